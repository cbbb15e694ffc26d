import type { FileStore } from '../../engines/file-store.ts'
import {
  type ImportError,
  type ImportRequested,
  type ImportResult,
  pagesStream,
} from '../../features/imports/events.ts'
import { targetNamed, targetsOf } from '../../features/imports/targets.ts'
import { IMPORT, type ImportReached, type ImportRow, reportKey } from '../../features/imports/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { Convention } from '../../kit/formats/conventions.ts'
import type { MappedColumn } from '../../kit/formats/mapped-rows.ts'
import { type OpenTable, openTable } from '../../kit/formats/open-table.ts'
import type { JobRun, JobWork } from '../../kit/jobs/attempt.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { dryLog } from './dry-log.ts'
import { KnownNames } from './known-names.ts'
import { listedLog } from './listed-log.ts'
import { keptPages } from './pages.ts'
import { recentRows } from './recent-rows.ts'
import { writeReport } from './report.ts'
import { RoutePlaces } from './route-places.ts'
import { ERRORS_MAX, RowImport, type RowImportServices } from './row-import.ts'
import { rowWriterOf } from './row-writer.ts'
import { Sender } from './sender.ts'
import { writeRoutes } from './write-routes.ts'

export type ImportRunServices = RowImportServices & { files: FileStore; settle: Settle }

/** The work of imports: page after page of the file, each attempt after the last page that an earlier one finished. */
export const importWork = (services: ImportRunServices): JobWork<ImportRequested, ImportRow> => ({
  kind: IMPORT,
  run: async (run) => {
    const { log, listed } = listedLog(services.log, services.settle)
    const end = await runImport({ ...services, log }, run)
    if (!run.signal.aborted) await listed()
    return end
  },
  release: async (id) => {
    const [first] = await services.log.read(IMPORT.stream(id), 0, 1)
    await services.log.erase(pagesStream(id))
    if (first?.type !== IMPORT.types.requested) return
    const { organizationId, upload } = decodeJson<ImportRequested>(first.data)
    await services.files.delete(upload)
    await services.files.delete(reportKey(organizationId, id))
  },
})

const runImport = async (
  services: ImportRunServices,
  run: JobRun<ImportRequested>,
): Promise<{ processed: number; result: ImportResult }> => {
  const { asked, signal } = run
  const sender = await Sender.of(services, asked)
  const { caller } = sender
  const found = await services.files.get(asked.upload)
  if (found === undefined) throw new Failure('not_found', { message: 'The file is not there any more.' })
  const { clock } = services
  const targets = await targetsOf(services.tables, caller, asked)
  const expected = Object.keys(asked.mapping)
  const options = { clock, signal, expected, ...(asked.sheet !== undefined && { sheet: asked.sheet }) }
  const table = await openTable(found.stream, options)
  try {
    const { rows: total, conventions } = await table.examine(asked.defaults)
    const columns = mappedColumns(table, asked, targets, conventions)
    const begun = (run.cursor as ImportReached | undefined) ?? {
      lastRow: 0,
      succeeded: 0,
      failed: 0,
      errors: [],
      total,
    }
    const names = new KnownNames(services.tables, caller)
    const places = await placesOf(services, run, names, begun.lastRow)
    const rowServices = { ...dry(services, asked), tables: recentRows(services.tables, clock) }
    const writer = await rowWriterOf(rowServices, caller, asked, names, places)
    const rowImport = new RowImport(services, run, sender, columns, writer)
    const read = await rowImport.all(table, begun)
    const late = await lateErrors(services, run, caller, places)
    const hasReport = read.failed + late.length > 0 && !signal.aborted
    const reportBytes = hasReport ? await writeReport(services, run.id, asked, table, late) : undefined
    const { total: _total, ...counts } = withLate(read, late)
    return {
      processed: counts.succeeded + counts.failed,
      result: { ...counts, hasReport, ...(hasReport && { reportBytes }) },
    }
  } finally {
    await table.close()
  }
}

/** The places of rows read by earlier attempts. */
const placesOf = async (
  { log, tables }: ImportRunServices,
  { id, attempt, asked }: JobRun<ImportRequested>,
  names: KnownNames,
  lastRow: number,
): Promise<RoutePlaces> => {
  const { organizationId, mode } = asked
  const places = new RoutePlaces({ log, tables, organizationId, importId: id, mode, attempt, names })
  if (lastRow === 0) return places
  for await (const page of keptPages(log, id))
    for (const place of page.places ?? []) if (place.row <= lastRow) await places.restore(place)
  return places
}

/** Rows whose places were refused once all rows were read. The tasks of a dry run do not exist and get no places. */
const lateErrors = async (
  services: ImportRunServices,
  run: JobRun<ImportRequested>,
  caller: UserCaller,
  places: RoutePlaces,
): Promise<ImportError[]> => {
  const { dryRun, type } = run.asked
  if (run.signal.aborted || (dryRun && type !== 'route')) return []
  return writeRoutes(dry(services, run.asked), caller, run, places.all(), services.clock.now())
}

const withLate = (read: ImportReached, late: readonly ImportError[]): ImportReached => ({
  ...read,
  succeeded: read.succeeded - late.length,
  failed: read.failed + late.length,
  errors: [...read.errors, ...late].sort((a, b) => a.row - b.row).slice(0, ERRORS_MAX),
})

const dry = (services: ImportRunServices, { dryRun }: ImportRequested): ResourceServices =>
  dryRun ? { ...services, log: dryLog(services.log) } : services

const mappedColumns = (
  table: OpenTable,
  { mapping, type, dateOrder }: ImportRequested,
  targets: Parameters<typeof targetNamed>[0],
  conventions: readonly Convention[],
): MappedColumn[] =>
  table.columns.flatMap((name, index): MappedColumn[] => {
    if (!Object.hasOwn(mapping, name)) return []
    const target = targetNamed(targets, type, mapping[name])
    if (target === undefined)
      throw new Failure('not_found', {
        message: `${mapping[name]}, which ${name} is mapped onto, is not there any more.`,
      })
    const { decimal, dateOrder: found } = conventions[index]
    return [{ index, name, target, convention: { decimal, dateOrder: dateOrder ?? found } }]
  })
