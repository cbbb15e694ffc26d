import { Worker } from 'node:worker_threads'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { ConventionDefaults } from './conventions.ts'
import type { MappedRow, Mapping } from './mapped-rows.ts'
import { TABLE_LIMITS, type TableLimits, type TableRow } from './table-cells.ts'
import type { ExaminedTable, OpenedTable, TableAnswer, TableAsked, TablePage } from './table-request.ts'

export interface OpenTableOptions {
  clock: Pick<Clock, 'after'>
  signal: AbortSignal
  sheet?: string
  /** Possible names of columns, which tell the header from titles above it. */
  expected?: readonly string[]
  limits?: TableLimits
  /** Longest time for one answer of the thread. */
  deadlineMs?: number
  /** Memory of the thread's heap, beside the bytes of the file. */
  heapMb?: number
}

const DEADLINE_MS = 120_000
const HEAP_MB = 512

/** A file in a thread of its own, which reads it without blocking this one. Its opener closes it. */
export class OpenTable {
  readonly about: OpenedTable['about']
  readonly columns: readonly string[]
  readonly headerRow: number
  private readonly thread: TableThread

  constructor(thread: TableThread, { about, columns, headerRow }: OpenedTable) {
    this.thread = thread
    this.about = about
    this.columns = columns
    this.headerRow = headerRow
  }

  /** Reads the whole file once. @throws Failure invalid, too_large */
  async examine(defaults: ConventionDefaults): Promise<ExaminedTable> {
    const answer = await this.thread.ask({ kind: 'examine', defaults })
    return (answer as { examined: ExaminedTable }).examined
  }

  /** Pages of the rows after a row number; the next page is read while one is worked on. @throws as `examine` */
  async *pages(after = 0): AsyncGenerator<TableRow[]> {
    for await (const page of this.answers({ kind: 'begin', after }))
      if ('rows' in page && page.rows.length > 0) yield page.rows
  }

  /** The same as values: whatever a row alone decides is done in the thread. */
  async *mappedPages(mapping: Mapping, after = 0): AsyncGenerator<MappedRow[]> {
    for await (const page of this.answers({ kind: 'begin', after, mapping })) {
      const rows = 'mapped' in page ? (JSON.parse(page.mapped) as MappedRow[]) : []
      if (rows.length > 0) yield rows
    }
  }

  private async *answers(begin: TableAsked): AsyncGenerator<TablePage> {
    await this.thread.ask(begin)
    let coming = this.thread.ask({ kind: 'next' })
    for (;;) {
      const page = (await coming) as TablePage
      if (!page.isLast) {
        coming = this.thread.ask({ kind: 'next' })
        coming.catch(() => undefined)
      }
      yield page
      if (page.isLast) return
    }
  }

  close(): Promise<void> {
    return this.thread.close()
  }
}

/** Hands a file to a thread and finds its table. @throws Failure invalid, too_large, unsupported_type, the source's */
export const openTable = async (source: AsyncIterable<Uint8Array>, options: OpenTableOptions): Promise<OpenTable> => {
  const thread = new TableThread(options)
  try {
    for await (const piece of source) {
      options.signal.throwIfAborted()
      thread.send(piece)
    }
    const { sheet, expected = [], limits = TABLE_LIMITS } = options
    const answer = await thread.ask({ kind: 'open', ...(sheet !== undefined && { sheet }), expected, limits })
    return new OpenTable(thread, (answer as { opened: OpenedTable }).opened)
  } catch (error) {
    await thread.close()
    throw error
  }
}

/** One question after another. */
class TableThread {
  private readonly worker: Worker
  private readonly options: OpenTableOptions
  private readonly waiting: { resolve(answer: TableAnswer): void; reject(error: unknown): void; cancel(): void }[] = []
  private ended: unknown
  private readonly abort = (): void => this.fail(this.options.signal.reason)

  constructor(options: OpenTableOptions) {
    this.options = options
    this.worker = new Worker(new URL('./table-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: options.heapMb ?? HEAP_MB },
    })
    this.worker.on('message', (answer: TableAnswer) => {
      const next = this.waiting.shift()
      next?.cancel()
      if ('fault' in answer) next?.reject(new Failure(answer.fault.code, { message: answer.fault.message }))
      else next?.resolve(answer)
    })
    this.worker.on('error', (error) => this.fail(failureOf(error)))
    this.worker.on('exit', () => this.fail(new Error('the thread that reads a file has ended')))
    options.signal.addEventListener('abort', this.abort)
  }

  send(piece: Uint8Array): void {
    const own = new Uint8Array(piece)
    this.worker.postMessage({ kind: 'piece', piece: own } satisfies TableAsked, [own.buffer])
  }

  ask(asked: TableAsked): Promise<TableAnswer> {
    return new Promise((resolve, reject) => {
      if (this.ended !== undefined) return reject(this.ended)
      const late = (): void => this.fail(new Failure('too_large', { message: 'The file takes too long to read.' }))
      const cancel = this.options.clock.after(this.options.deadlineMs ?? DEADLINE_MS, late)
      this.waiting.push({ resolve, reject, cancel })
      this.worker.postMessage(asked)
    })
  }

  async close(): Promise<void> {
    this.options.signal.removeEventListener('abort', this.abort)
    this.fail(new Error('the file was closed'))
    await this.worker.terminate()
  }

  private fail(reason: unknown): void {
    this.ended ??= reason
    for (const { reject, cancel } of this.waiting.splice(0)) {
      cancel()
      reject(this.ended)
    }
    void this.worker.terminate()
  }
}

const failureOf = (error: unknown): unknown =>
  (error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? new Failure('too_large', { message: 'The file needs too much memory to read; divide it.' })
    : error
