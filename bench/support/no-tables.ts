import type { TableStore } from '../../src/engines/table-store.ts'

/** Tables that keep nothing, for what latest positions ask of them. */
export const noTables = {
  declare: async () => undefined,
  take: async () => ({ at: undefined, fence: 1 }),
  commit: async () => undefined,
  getMany: async (_table: string, _scope: string, ids: readonly string[]) => ids.map(() => undefined),
} as unknown as TableStore
