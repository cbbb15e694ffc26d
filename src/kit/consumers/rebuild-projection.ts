import { isDeepStrictEqual } from 'node:util'
import type { StoredRow, TableStore } from '../../engines/table-store.ts'
import { OwnedCheckpoint } from './checkpoint.ts'
import type { Owners } from './owners.ts'
import { ProjectedRows } from './projection-overlay.ts'
import { type Projection, type ProjectionServices, versionsOf } from './projection.ts'
import { Storing } from './storing.ts'

/** A row that differs between the live table and the rebuilt one; absent on the side that lacks it. */
export interface Difference {
  table: string
  scope: string
  id: string
  live?: unknown
  rebuilt?: unknown
}

type RebuildServices = Pick<ProjectionServices, 'log' | 'tables'>

export interface RebuildReport {
  projection: string
  /** Rows of the rebuilt tables. */
  rows: number
  /** Number of rows that differ, and the first hundred of them; only when compared. */
  differing?: number
  differences?: Difference[]
}

/** Suffix of tables and consumers that are built beside the live ones. */
const NEXT = '@next'
const BATCH_EVENTS_MAX = 512
/** Position before the first event of a log. */
const NOTHING = -1
const DIFFERENCES_MAX = 100

/**
 * Builds the tables of a projection anew beside the live ones, then, while nobody follows the log for it, compares both
 * at the same position of the log and swaps them. The report names the rows that differ.
 */
export const rebuildProjection = async (
  projection: Projection,
  services: RebuildServices & { owners: Owners },
  signal: AbortSignal,
): Promise<RebuildReport> => {
  const { tables, owners } = services
  const stored = async (): Promise<number | undefined> => (await tables.checkpoint(projection.name))?.all
  const from = await buildBeside(projection, services, signal, (await stored()) ?? NOTHING)
  return owners.borrow([projection.name], async () => {
    const through = (await stored()) ?? NOTHING
    if ((from ?? NOTHING) > through) throw new Error(`${projection.name} went back in the log meanwhile; try again`)
    await continueBeside(projection, services, signal, { from, target: through })
    const report = await compareTables(projection, tables)
    await promoteBeside(projection, tables)
    return report
  })
}

/**
 * Empties the tables beside the live ones, fills them from the log up to `target` (absent: to its end), some rows at a
 * time, and answers the position reached.
 */
export const buildBeside = async (
  projection: Projection,
  services: RebuildServices,
  signal: AbortSignal,
  target?: number,
  rowsMax?: number,
): Promise<number | undefined> => {
  const { tables } = services
  await Promise.all(projection.tables.map((table) => tables.declare({ ...table, name: table.name + NEXT })))
  await tables.reset(
    projection.tables.map(({ name }) => name + NEXT),
    projection.name + NEXT,
  )
  return continueBeside(projection, services, signal, { target, rowsMax })
}

/** Continues from a position that `buildBeside` reached. */
const continueBeside = async (
  projection: Projection,
  { log, tables }: RebuildServices,
  signal: AbortSignal,
  { from, target = Number.POSITIVE_INFINITY, rowsMax }: { from?: number; target?: number; rowsMax?: number },
): Promise<number | undefined> => {
  const rows = new ProjectedRows(projection, tables, NEXT)
  const storing = new Storing()
  const owned = await OwnedCheckpoint.take(tables, projection.name + NEXT)
  let at = from
  for await (const batch of log.follow({ prefixes: projection.prefixes }, from, signal, BATCH_EVENTS_MAX)) {
    await rows.apply(batch.events.filter((event) => event.position <= target))
    at = Math.min(target, Math.max(batch.checkpoint, at ?? batch.checkpoint))
    const isLast = batch.caughtUp || batch.checkpoint >= target
    if (!isLast && !rows.areMany(rowsMax)) continue
    const [changes, all] = [rows.take() ?? [], at]
    await storing.begin(() => owned.commit(changes, { all, ...versionsOf(projection) }))
    if (!isLast) continue
    await storing.end()
    return at
  }
  throw new Error(`the rebuilding of ${projection.name} was ended`)
}

/** Compares the live tables with those beside them, row by row. Nothing may write to either of them meanwhile. */
const compareTables = async (projection: Projection, tables: TableStore): Promise<RebuildReport> => {
  const report: Required<RebuildReport> = { projection: projection.name, rows: 0, differing: 0, differences: [] }
  for (const { name } of projection.tables) {
    for await (const [live, rebuilt] of pairs(tables.scanAll(name), tables.scanAll(name + NEXT))) {
      if (rebuilt !== undefined) report.rows++
      if (isDeepStrictEqual(live?.row, rebuilt?.row)) continue
      const { scope, id } = (live ?? rebuilt) as StoredRow
      if (++report.differing <= DIFFERENCES_MAX)
        report.differences.push({ table: name, scope, id, live: live?.row, rebuilt: rebuilt?.row })
    }
  }
  return report
}

/** Replaces the live tables with those built beside them. */
export const promoteBeside = (projection: Projection, tables: TableStore): Promise<void> =>
  tables.promote(
    projection.tables.map(({ name }) => name),
    projection.name,
  )

/** Walks two scans, both by scope and id, side by side. */
async function* pairs(
  left: AsyncIterable<StoredRow>,
  right: AsyncIterable<StoredRow>,
): AsyncGenerator<[StoredRow | undefined, StoredRow | undefined]> {
  const lefts = left[Symbol.asyncIterator]()
  const rights = right[Symbol.asyncIterator]()
  let a = await lefts.next()
  let b = await rights.next()
  while (!a.done || !b.done) {
    const order = a.done ? 1 : b.done ? -1 : compareKeys(a.value, b.value)
    yield [order <= 0 && !a.done ? a.value : undefined, order >= 0 && !b.done ? b.value : undefined]
    if (order <= 0) a = await lefts.next()
    if (order >= 0) b = await rights.next()
  }
}

const compareKeys = (a: StoredRow, b: StoredRow): number => compareBytes(a.scope, b.scope) || compareBytes(a.id, b.id)

const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
