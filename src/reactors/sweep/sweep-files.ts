import type { FileStore } from '../../engines/file-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'

/** Files of one kind, and a test for references to them. */
export interface FileOwner {
  prefix: string
  /** Further prefixes of keys after it: one sweep need not look at all of them. Left out: it has no parts. */
  parts?: readonly string[]
  /** Whether any record names the file. By the log: rows of tables may be on their way. */
  isNamed(key: string): Promise<boolean>
}

/** Place where the next sweep continues. */
const SWEEPS: TableDeclaration = { name: 'fileSweeps', version: 1, equality: [] }

interface SweepRow extends Row {
  prefix: string
}

const ROW = 'files'
/** A file is put before the record that names it is written: a younger one may still be named. */
const YOUNG_MS = 24 * 3_600_000
/** Files after which a sweep starts no further part. */
const LOOKED_MAX = 20_000

export interface SweepServices {
  files: Pick<FileStore, 'list' | 'delete'>
  tables: Pick<TableStore, 'declare' | 'get' | 'commit'>
  clock: Pick<Clock, 'now'>
}

/**
 * Deletes files that are no longer named, such as a replaced logo, or an attachment whose request broke off at the last
 * moment; answers their number. A sweep takes part after part until it has looked at enough, and the next one continues
 * there, also after a restart.
 */
export const sweepFiles = async (
  { files, tables, clock }: SweepServices,
  owners: readonly FileOwner[],
  signal: AbortSignal,
  lookedMax = LOOKED_MAX,
): Promise<number> => {
  await tables.declare(SWEEPS)
  const places = owners.flatMap(({ prefix, parts = [''], isNamed }) =>
    parts.map((part) => ({ prefix: prefix + part, isNamed })),
  )
  const kept = await tables.get<SweepRow>(SWEEPS.name, NO_ORGANIZATION, ROW)
  const begin = Math.max(
    0,
    places.findIndex(({ prefix }) => prefix === kept?.prefix),
  )
  let deleted = 0
  let looked = 0
  for (let i = 0; i < places.length && looked < lookedMax; i++) {
    const { prefix, isNamed } = places[(begin + i) % places.length]
    const lookedBefore = looked
    for await (const { key, putAt } of files.list(prefix)) {
      if (signal.aborted) return deleted
      looked++
      if (putAt > clock.now() - YOUNG_MS || (await isNamed(key))) continue
      await files.delete(key)
      deleted++
    }
    if (looked === lookedBefore) continue
    const row: SweepRow = { prefix: places[(begin + i + 1) % places.length].prefix }
    await tables.commit([{ table: SWEEPS.name, scope: NO_ORGANIZATION, id: ROW, row }])
  }
  return deleted
}
