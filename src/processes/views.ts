import type { TableDeclaration } from '../kernel/table.ts'

/** Processes that have begun and not ended, by subject, without organization. */
export const OPEN_PROCESSES: TableDeclaration = { name: 'open-processes', version: 1, range: ['startedAt'] }

export type OpenProcessRow = {
  process: string
  organizationId: string
  /** ms since the epoch. */
  startedAt: number
}
