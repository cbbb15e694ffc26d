import type { FileStore } from '../../engines/file-store.ts'
import { assertMayWrite } from '../../features/imports/import-form.ts'
import {
  type ImportError,
  type ImportPage,
  type ImportPlace,
  type ImportRequested,
  type ImportResult,
  pagesStream,
} from '../../features/imports/events.ts'
import { targetNamed, targetsOf } from '../../features/imports/targets.ts'
import { IMPORT, type ImportReached, type ImportRow, madeId, reportKey } from '../../features/imports/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import type { Convention } from '../../kit/formats/conventions.ts'
import { type OpenTable, openTable } from '../../kit/formats/open-table.ts'
import type { TableRow } from '../../kit/formats/table-cells.ts'
import { ZonedTime } from '../../kit/formats/zoned-time.ts'
import type { JobRun, JobWork } from '../../kit/jobs/attempt.ts'
import { writeEach } from '../../kit/resource/bulk.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { callerNow } from '../callers/caller-now.ts'
import { dryLog, WouldWrite } from './dry-log.ts'
import { KnownNames } from './known-names.ts'
import { keepPage, keptPages } from './pages.ts'
import { writeReport } from './report.ts'
import { RoutePlaces } from './route-places.ts'
import { rowWriterOf } from './row-writer.ts'
import type { RowWriter, RowWritten } from './row-written.ts'
import { CellFault, type MappedColumn, valuesOf, withPlaces } from './understand-row.ts'
import { writeRoutes } from './write-routes.ts'

export type ImportRunServices = ResourceServices & { files: FileStore; clock: Clock }

const ERRORS_MAX = 100
const MESSAGE_CHARS_MAX = 300

/** How imports are done: page after page of the file, each attempt behind the last page that one before it finished. */
export const importWork = (services: ImportRunServices): JobWork<ImportRequested, ImportRow> => ({
  kind: IMPORT,
  run: (run) => runImport(services, run),
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
  const caller = await senderOf(services, asked)
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
    const writer = await rowWriterOf(dry(services, asked), caller, asked, names, places)
    const rowImport = new RowImport(services, run, caller, columns, writer)
    const read = await rowImport.all(table, begun)
    const late = await lateErrors(services, run, caller, places)
    const hasReport = read.failed + late.length > 0 && !signal.aborted
    if (hasReport) await writeReport(services, run.id, asked, table, late)
    const { total: _total, ...counts } = withLate(read, late)
    return { processed: counts.succeeded + counts.failed, result: { ...counts, hasReport } }
  } finally {
    await table.close()
  }
}

/** The places of rows that attempts before this one have read. */
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

/** Rows whose places were refused once all rows were read. The tasks of a dry run are not there to be given places. */
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

/** @throws Failure forbidden for a sender who may not do this any more */
const senderOf = async ({ tables, clock }: ImportRunServices, asked: ImportRequested): Promise<UserCaller> => {
  const caller = await callerNow(tables, asked.organizationId, asked.userId, clock.now())
  if (caller === undefined || !caller.permissions.has('import/data'))
    throw new Failure('forbidden', { message: 'Whoever sent the file may not import any more.' })
  assertMayWrite(caller, asked.type, asked.mapping)
  return caller
}

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

interface Item extends JsonObject {
  row: number
  values: JsonObject
}

/** One attempt at the rows of a file. */
class RowImport {
  private readonly services: ImportRunServices
  private readonly run: JobRun<ImportRequested>
  private readonly caller: UserCaller
  private readonly columns: readonly MappedColumn[]
  private readonly writer: RowWriter
  private readonly zone: ZonedTime
  /** Keys that rows of a dry run would have taken. */
  private readonly taken = new Set<unknown>()

  constructor(
    services: ImportRunServices,
    run: JobRun<ImportRequested>,
    caller: UserCaller,
    columns: readonly MappedColumn[],
    writer: RowWriter,
  ) {
    this.services = services
    this.run = run
    this.caller = caller
    this.columns = columns
    this.writer = writer
    this.zone = new ZonedTime(run.asked.timeZone)
  }

  async all(table: OpenTable, begun: ImportReached): Promise<ImportReached> {
    let reached = begun
    const { signal, progress } = this.run
    for await (const rows of table.pages(begun.lastRow)) {
      if (signal.aborted) break
      reached = await this.page(rows, reached)
      await progress(reached.succeeded + reached.failed, reached)
    }
    return reached
  }

  private async page(rows: readonly TableRow[], reached: ImportReached): Promise<ImportReached> {
    const { id, asked } = this.run
    const errors: ImportError[] = []
    const items = rows.flatMap((one) => this.itemOf(one, errors))
    const { changed, places } = await this.write(items, errors)
    errors.sort((a, b) => a.row - b.row)
    const lastRow = rows[rows.length - 1].row
    await keepPage(this.services.log, id, lastRow, {
      organizationId: asked.organizationId,
      errors,
      changed,
      ...(places.length > 0 && { places }),
    })
    return {
      ...reached,
      lastRow,
      succeeded: reached.succeeded + rows.length - errors.length,
      failed: reached.failed + errors.length,
      errors: [...reached.errors, ...errors].slice(0, ERRORS_MAX),
    }
  }

  private itemOf({ row, cells }: TableRow, errors: ImportError[]): Item[] {
    try {
      const values = withPlaces(valuesOf(this.columns, cells, this.zone), this.columns)
      return [{ row, values }]
    } catch (error) {
      if (!(error instanceof CellFault)) throw error
      errors.push({ row, column: error.column, code: 'invalid', message: error.message })
      return []
    }
  }

  /** Answers what was there before and is changed, and the places that rows were given. */
  private async write(
    items: readonly Item[],
    errors: ImportError[],
  ): Promise<{ changed: ImportPage['changed']; places: ImportPlace[] }> {
    if (items.length === 0) return { changed: [], places: [] }
    const { id } = this.run
    const { clock } = this.services
    const now = clock.now()
    const request = { caller: this.caller, now, ids: idSource(now), correlationId: id }
    const keysOf = ({ values }: JsonObject) => this.writer.keysOf(values as JsonObject)
    const changed: { row: number; id: string }[] = []
    const places: ImportPlace[] = []
    await writeEach(
      request,
      items,
      async (item, origin) => {
        const { row, values } = item as Item
        try {
          const written = await this.one(origin, row, values)
          if (written.place !== undefined) places.push(written.place)
          if (!written.isNew) changed.push({ row, id: written.row._id as string })
          return written
        } catch (error) {
          if (error instanceof Failure && error.status < 500) errors.push(this.errorOf(row, error))
          throw error
        }
      },
      keysOf,
    )
    return { changed, places }
  }

  private async one(origin: WriteOrigin, row: number, values: JsonObject): Promise<RowWritten> {
    const { id, asked, attempt } = this.run
    let drawn = 0
    const own: WriteOrigin = {
      ...origin,
      ids: { next: () => idFrom('import-event', id, row, drawn++), isRepeat: attempt > 1 },
      metadata: { organizationId: asked.organizationId, actor: `import:${id}`, $correlationId: id, $causationId: id },
    }
    const madeAs = madeId(id, asked.at, row)
    try {
      return await this.writer.write(own, row, madeAs, values)
    } catch (error) {
      if (!(error instanceof WouldWrite)) throw error
      this.assertNotTaken(values)
      return { row: { _id: madeAs }, isNew: true }
    }
  }

  /** Nothing of a dry run is there for the next row to meet. */
  private assertNotTaken(values: JsonObject): void {
    if (this.run.asked.mode === 'upsert') return
    const [key] = this.writer.keysOf(values)
    if (key === undefined || key === null) return
    if (this.taken.has(key))
      throw new Failure('key_in_use', { message: `${JSON.stringify(key)} stands in an earlier row.` })
    this.taken.add(key)
  }

  private errorOf(row: number, { code, message, details }: Failure): ImportError {
    const fault = details.errors?.[0]
    const target = fault === undefined ? undefined : this.writer.targetAt(fault.path)
    const column = this.columns.find((one) => one.target.name === target || one.target.name.startsWith(`${target}.`))
    const text = fault === undefined || column === undefined ? message : fault.message
    return { row, column: column?.name ?? null, code, message: text.slice(0, MESSAGE_CHARS_MAX) }
  }
}
