import type { ImportError, ImportPage, ImportPlace, ImportRequested } from '../../features/imports/events.ts'
import { type ImportReached, madeId } from '../../features/imports/views.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import type { MappedColumn, MappedRow } from '../../kit/formats/mapped-rows.ts'
import type { OpenTable } from '../../kit/formats/open-table.ts'
import type { JobRun } from '../../kit/jobs/attempt.ts'
import { writeEach } from '../../kit/resource/bulk.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { WouldWrite } from './dry-log.ts'
import { keepPage } from './pages.ts'
import type { RowWriter, RowWritten } from './row-written.ts'
import type { Sender } from './sender.ts'

export type RowImportServices = ResourceServices & { clock: Clock }

/** Refused rows that are reported with the import itself. */
export const ERRORS_MAX = 100
const MESSAGE_CHARS_MAX = 300

interface Item extends JsonObject {
  row: number
  values: JsonObject
}

/** One attempt at the rows of a file. */
export class RowImport {
  private readonly services: RowImportServices
  private readonly run: JobRun<ImportRequested>
  private readonly sender: Sender
  private readonly columns: readonly MappedColumn[]
  private readonly writer: RowWriter
  /** One object, so that the log encodes it once for all rows. */
  private readonly metadata: EventMetadata
  /** Keys that rows of a dry run would have taken. */
  private readonly taken = new Set<unknown>()

  constructor(
    services: RowImportServices,
    run: JobRun<ImportRequested>,
    sender: Sender,
    columns: readonly MappedColumn[],
    writer: RowWriter,
  ) {
    this.services = services
    this.run = run
    this.sender = sender
    this.columns = columns
    this.writer = writer
    const { id, asked } = run
    this.metadata = {
      organizationId: asked.organizationId,
      actor: `import:${id}`,
      $correlationId: id,
      $causationId: id,
    }
  }

  async all(table: OpenTable, begun: ImportReached): Promise<ImportReached> {
    let reached = begun
    const { signal, progress, asked } = this.run
    const mapping = { columns: this.columns, timeZone: asked.timeZone }
    for await (const rows of table.mappedPages(mapping, begun.lastRow)) {
      if (signal.aborted) break
      reached = await this.page(rows, reached)
      await progress(reached.succeeded + reached.failed, reached)
    }
    return reached
  }

  private async page(rows: readonly MappedRow[], reached: ImportReached): Promise<ImportReached> {
    const { id, asked } = this.run
    const errors: ImportError[] = []
    const items: Item[] = []
    const refusal = await this.sender.refusal()
    for (const one of rows) {
      if (refusal !== undefined) errors.push(this.errorOf(one.row, refusal))
      else if ('values' in one) items.push(one)
      else errors.push({ row: one.row, code: 'invalid', ...one.fault })
    }
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

  /** Answers the previous state of changed records, and the places that rows were given. */
  private async write(
    items: readonly Item[],
    errors: ImportError[],
  ): Promise<{ changed: ImportPage['changed']; places: ImportPlace[] }> {
    if (items.length === 0) return { changed: [], places: [] }
    const { id } = this.run
    const { clock } = this.services
    const now = clock.now()
    const request = { caller: this.sender.caller, now, ids: idSource(now), correlationId: id }
    const keysOf = ({ values }: JsonObject) => this.writer.keysOf(values as JsonObject)
    await this.writer.lookUp?.(items.map(({ values }) => values))
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
    const { metadata } = this
    let drawn = 0
    const own: WriteOrigin = {
      ...origin,
      ids: { next: () => idFrom('import-event', id, row, drawn++), isRepeat: attempt > 1 },
      isOwnId: attempt === 1,
      metadata,
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

  /** Rows of a dry run leave nothing for the next row to conflict with. */
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
