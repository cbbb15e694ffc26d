import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import { pause } from '../consumers/retry.ts'

/** Owners of work that only one process may do at a time. */
const OWNERS: TableDeclaration = { name: 'owners', version: 1, lives: 'row' }
/** Silence after which a process counts as dead. */
const LIFE_MS = 30_000
const SIGN_OF_LIFE_MS = 10_000
const POLL_MS = 500

export interface AloneServices {
  tables: Pick<TableStore, 'declare' | 'putIfAbsent' | 'commit'>
  clock: Clock
  /** A unique name of this process. */
  owner: string
}

/** Runs work that only one process may do at a time, under any name; the others wait for their turn. */
export const alone = async <Result>(
  name: string,
  { tables, clock, owner }: AloneServices,
  run: () => Promise<Result>,
): Promise<Result> => {
  const row = { table: OWNERS.name, scope: NO_ORGANIZATION, id: name }
  const mine = () => ({ ...row, row: { owner }, expiresAt: clock.now() + LIFE_MS })
  await tables.declare(OWNERS)
  while ((await tables.putIfAbsent(mine())) !== undefined) await pause(clock, POLL_MS)
  let signing: Promise<void> = Promise.resolve()
  let isOver = false
  const sign = (): void => {
    if (isOver) return
    signing = tables.commit([mine()]).catch(() => undefined) // the next sign may come through
    cancel = clock.after(SIGN_OF_LIFE_MS, sign)
  }
  let cancel = clock.after(SIGN_OF_LIFE_MS, sign)
  try {
    return await run()
  } finally {
    isOver = true
    cancel()
    await signing
    await tables.commit([{ ...row, row: null }])
  }
}
