// Loaded here before any worker loads it: otherwise the process ends with SIGSEGV at its exit.
import 'chdb'
import { Worker } from 'node:worker_threads'
import { Failure } from '../../kernel/errors.ts'
import { type ChdbOptions, workerOptions } from './options.ts'
import { countCalls, forgetCalls } from './native-calls.ts'
import { bindParameters } from './parameters.ts'
import type { Reply, Request, WorkerData } from './protocol.ts'
import { ChunkStream, failureOf, WriteWait, type Operation } from './operations.ts'
import { eraseRows } from '../clickhouse-sql/erase.ts'
import type { HistoryErasure, HistoryFormat, HistoryParameters, HistoryStore } from '../history-store.ts'

const ROWS_MAX = 10_000
const ROWS_DEADLINE_MS = 60_000
const RESTART_MS = [100, 500, 2_000, 5_000]
const CRASHES = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const

/**
 * The engine installs crash handlers for the whole process with its first session and then hangs it, so that no
 * supervisor restarts it. Removing the last listener gives a signal its default action back.
 */
const endAtCrashes = (): void => {
  const listener = (): void => undefined
  for (const signal of CRASHES) process.on(signal, listener).off(signal, listener)
}

/** The engine of the location history in this process. Resolves when its worker answers. */
export const openChdbHistoryStore = async (options: ChdbOptions): Promise<ChdbHistoryStore> => {
  const store = new ChdbHistoryStore(options)
  await store.ready
  return store
}

export class ChdbHistoryStore implements HistoryStore {
  /** Rejects where the first start of the worker fails. */
  readonly ready: Promise<void>
  private worker: Worker | undefined
  private readonly operations = new Map<number, Operation>()
  private nextId = 1
  private writes = 0
  private queries = 0
  private starts = 0
  private closing: (() => void) | undefined
  private readonly options: ChdbOptions
  private readonly queueMax: number

  constructor(options: ChdbOptions) {
    this.options = options
    this.queueMax = options.queueMax ?? 64
    this.ready = this.start()
    this.ready.catch(() => undefined) // handed to the opener; a restart is tried meanwhile
  }

  async command(sql: string, parameters?: HistoryParameters): Promise<void> {
    const bound = bindParameters(sql, parameters)
    await this.write((id) => ({ kind: 'command', id, sql: bound }))
  }

  async insert(table: string, block: Uint8Array, token: string): Promise<void> {
    if (!/^\w+$/.test(table)) throw new Error(`no name of a table: ${table}`)
    const { buffer } = block
    const transfer = buffer instanceof ArrayBuffer && buffer.byteLength === block.byteLength ? [buffer] : []
    await this.write((id) => ({ kind: 'insert', id, table, token, block }), transfer)
  }

  erase(erasures: readonly HistoryErasure[]): Promise<void> {
    return eraseRows(this, erasures)
  }

  async *query(
    sql: string,
    parameters: HistoryParameters | undefined,
    format: HistoryFormat,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    yield* this.stream(bindParameters(sql, parameters), format, this.options.deadlineMs ?? 300_000, signal)
  }

  async rows<R extends object>(sql: string, parameters?: HistoryParameters): Promise<R[]> {
    const decoder = new TextDecoder()
    const rows: R[] = []
    for await (const chunk of this.stream(bindParameters(sql, parameters), 'JSONEachRow', ROWS_DEADLINE_MS)) {
      // A chunk of this format always ends with a row.
      for (const line of decoder.decode(chunk).split('\n')) {
        if (line === '') continue
        if (rows.length === ROWS_MAX)
          throw new Failure('too_large', { message: `The answer has over ${ROWS_MAX} rows; narrow the question.` })
        rows.push(JSON.parse(line) as R)
      }
    }
    return rows
  }

  async ping(): Promise<void> {
    await this.rows('SELECT 1 AS one')
  }

  async close(): Promise<void> {
    if (this.closing !== undefined) return
    const worker = this.worker
    await new Promise<void>((resolve) => {
      this.closing = resolve
      if (worker === undefined) resolve()
      else {
        worker.once('exit', resolve)
        this.post(worker, { kind: 'close' })
      }
    })
    this.failAll(new Failure('engine_down', { message: 'The history is closed.' }))
  }

  /** Makes the worker throw uncaught: its operations fail with `engine_down` and a new one starts. For tests. */
  crash(): void {
    if (this.worker !== undefined) this.post(this.worker, { kind: 'crash' })
  }

  private async write(request: (id: number) => Request, transfer: ArrayBuffer[] = []): Promise<void> {
    const worker = this.running()
    if (this.writes >= this.queueMax)
      throw new Failure('overloaded', { message: 'Too many writes wait for the history.', retryAfterSeconds: 1 })
    const id = this.nextId++
    this.writes++
    try {
      await new Promise<void>((resolve, reject) => {
        this.operations.set(id, new WriteWait(resolve, reject))
        this.post(worker, request(id), transfer)
      })
    } finally {
      this.writes--
      this.operations.delete(id)
    }
  }

  private async *stream(
    sql: string,
    format: HistoryFormat,
    deadlineMs: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    signal?.throwIfAborted()
    const worker = this.running()
    if (this.queries >= this.queueMax)
      throw new Failure('overloaded', { message: 'Too many queries of the history are open.', retryAfterSeconds: 1 })
    const id = this.nextId++
    this.queries++
    const chunks = new ChunkStream()
    const onAbort = (): void => chunks.fail(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    this.operations.set(id, chunks)
    this.post(worker, { kind: 'query', id, sql, format, deadlineMs })
    try {
      for (;;) {
        const chunk = await chunks.take()
        if (chunk === undefined) return
        if (this.worker === worker) this.post(worker, { kind: 'pull', id })
        yield chunk
      }
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.operations.delete(id)
      this.queries--
      if (!chunks.ended && this.worker === worker) this.post(worker, { kind: 'cancel', id })
    }
  }

  private running(): Worker {
    if (this.worker === undefined || this.closing !== undefined)
      throw new Failure('engine_down', {
        message: 'The history does not answer; try again later.',
        retryAfterSeconds: 1,
      })
    return this.worker
  }

  private post(worker: Worker, request: Request, transfer: ArrayBuffer[] = []): void {
    worker.postMessage(request, transfer)
  }

  private start(): Promise<void> {
    const calls = countCalls()
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: { ...workerOptions(this.options), calls } satisfies WorkerData,
    })
    return new Promise<void>((resolve, reject) => {
      let failure: unknown
      worker.on('message', (reply: Reply) => {
        if (reply.kind === 'ready') {
          this.worker = worker
          this.starts = 0
          endAtCrashes()
          resolve()
        } else if (reply.kind === 'dying') this.fallen(reply.message)
        else if (reply.kind !== 'closed') this.operations.get(reply.id)?.receive(reply)
      })
      worker.on('error', (error) => (failure = error))
      worker.on('exit', () => {
        forgetCalls(calls)
        reject(this.fallen(failure instanceof Error ? failure.message : 'the worker of the history ended'))
        if (this.closing === undefined) this.restart()
      })
    })
  }

  private restart(): void {
    const delayMs = RESTART_MS[Math.min(this.starts++, RESTART_MS.length - 1)]
    setTimeout(() => {
      if (this.closing === undefined) this.start().catch(() => undefined) // its exit has planned the next try
    }, delayMs).unref()
  }

  /** The worker gets no more requests, and pending ones fail. */
  private fallen(message: string): Failure {
    this.worker = undefined
    const down = failureOf({ kind: 'failed', id: 0, message }, true)
    this.failAll(down)
    return down
  }

  private failAll(failure: Failure): void {
    for (const operation of [...this.operations.values()]) operation.fail(failure)
  }
}
