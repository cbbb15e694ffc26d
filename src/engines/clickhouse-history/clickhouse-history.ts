import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client'
import { anyAborted } from '../../kernel/any-aborted.ts'
import { Failure } from '../../kernel/errors.ts'
import { historyDown } from '../clickhouse-sql/failures.ts'
import { eraseRows } from '../clickhouse-sql/erase.ts'
import type { HistoryErasure, HistoryFormat, HistoryParameters, HistoryStore } from '../history-store.ts'
import type { Examination } from '../examination.ts'
import { examineHistory } from './examine.ts'
import { checkedBody } from './checked-body.ts'
import { insertBody, isSameMachine } from './insert-body.ts'
import { failureOf, Liveness } from './liveness.ts'
import { multipartOf, parametersBytes } from './multipart.ts'

export interface ClickhouseOptions {
  /** `http(s)://user:password@host:8123/database`, which exists already. `?cluster=` spreads its tables over one. */
  url: string
  /** Maximum of open queries, and of waiting writes (default 64); further ones are refused as `overloaded`. */
  queueMax?: number
  /** Longest silence of the server during a request (default 5 minutes). */
  deadlineMs?: number
  /** Silence of a server during a question after which it is pinged, and its time to answer the ping (default 5 s): slow is not dead. */
  quietMs?: number
}

/** Oldest server version whose HTTP interface, settings and functions this adapter and its SQL support. */
const SERVER_MIN = [25, 3] as const
/** Memory that one query may take in the server; sorts and groups go to disk from a quarter on. */
const QUERY_BYTES_MAX = 1 << 30
const ROWS_MAX = 10_000
const ROWS_SECONDS_MAX = 60
const STREAM_SECONDS_MAX = 3_600
const STREAM_ROWS_MAX = 1_000_000_000
/** Time after which an unanswered insert is resent under its token: on a connection that died unseen no answer would come. */
const INSERT_MS_MAX = 30_000
/** Reads of a cluster go to the replica of the writes while it lives: so they see those writes. */
const NEAREST = { load_balancing: 'in_order', skip_unavailable_shards: 0 } as const
/** Parameters above this size go into the body: servers refuse long addresses. */
const URL_PARAMETERS_BYTES_MAX = 4_096

/**
 * The location history on a ClickHouse server. Resolves when the server has answered and is new enough.
 * @throws Failure engine_down; Error for a server that is too old.
 */
export const openClickhouseHistory = async (options: ClickhouseOptions): Promise<HistoryStore> => {
  const store = new ClickhouseHistory(options)
  try {
    await store.assertVersion()
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

class ClickhouseHistory implements HistoryStore {
  readonly cluster: string | undefined
  private readonly reader: ClickHouseClient
  private readonly writer: ClickHouseClient
  private readonly liveness: Liveness
  private readonly compresses: boolean
  private readonly queueMax: number
  private readonly abort = new AbortController()
  private queries = 0
  private writes = 0

  constructor({ url, queueMax = 64, deadlineMs = 300_000, quietMs = 5_000 }: ClickhouseOptions) {
    this.queueMax = queueMax
    const address = new URL(url)
    this.cluster = address.searchParams.get('cluster') ?? undefined
    address.searchParams.delete('cluster')
    const shared = {
      url: address,
      application: 'waymark',
      request_timeout: deadlineMs,
      max_open_connections: queueMax,
      log: { level: ClickHouseLogLevel.OFF },
    }
    this.compresses = !isSameMachine(address.hostname)
    // Two clients, so that open reads leave connections for writes.
    this.reader = createClient({ ...shared, compression: { response: true, request: false } })
    this.writer = createClient({ ...shared, compression: { response: false, request: false } })
    this.liveness = new Liveness(shared, { quietMs })
  }

  async assertVersion(): Promise<void> {
    const [{ version }] = await this.rows<{ version: string }>('SELECT version() AS version')
    const [major, minor] = version.split('.').map(Number)
    if (major > SERVER_MIN[0] || (major === SERVER_MIN[0] && minor >= SERVER_MIN[1])) return
    throw new Error(`--history is a ClickHouse ${version}; Waymark needs ${SERVER_MIN.join('.')} or newer`)
  }

  async command(sql: string, parameters?: HistoryParameters): Promise<void> {
    const asked = {
      abort_signal: this.abort.signal,
      clickhouse_settings: { ...this.durable(), mutations_sync: '2' },
    } as const
    await this.write(async () => {
      if (!isLong(parameters))
        return this.writer.command({ ...asked, query: sql, query_params: parameters as Record<string, unknown> })
      const { stream } = await this.reader.exec({ ...asked, ...multipartOf(sql, parameters as HistoryParameters) })
      for await (const _chunk of stream) {
        // The answer is empty; reading it to its end frees the connection.
      }
    })
  }

  async insert(table: string, block: Uint8Array, token: string): Promise<void> {
    if (!/^\w+$/.test(table)) throw new Error(`no name of a table: ${table}`)
    const { signal, release } = anyAborted(this.abort.signal, AbortSignal.timeout(INSERT_MS_MAX))
    await this.write(async () => {
      const { stream } = await this.writer.exec({
        query: `INSERT INTO ${table} FORMAT Native`,
        ...(await insertBody(block, this.compresses)),
        abort_signal: signal,
        clickhouse_settings: {
          ...this.durable(),
          insert_deduplicate: 1,
          insert_deduplication_token: token,
        },
      })
      for await (const _chunk of stream) {
        // The answer is empty; reading it to its end frees the connection.
      }
    }).finally(release)
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
    const limits = { max_execution_time: STREAM_SECONDS_MAX, max_result_rows: String(STREAM_ROWS_MAX) }
    yield* this.stream(`${sql}\nFORMAT ${format}`, parameters, limits, signal)
  }

  async rows<R extends object>(sql: string, parameters?: HistoryParameters): Promise<R[]> {
    const limits = {
      max_execution_time: ROWS_SECONDS_MAX,
      max_result_rows: String(ROWS_MAX + 1),
      result_overflow_mode: 'break',
    } as const
    const parts: Uint8Array[] = []
    const late = AbortSignal.timeout((ROWS_SECONDS_MAX + 10) * 1_000)
    try {
      for await (const chunk of this.stream(`${sql}\nFORMAT JSONEachRow`, parameters, limits, late)) parts.push(chunk)
    } catch (error) {
      throw late.aborted ? historyDown(error) : error
    }
    const lines = Buffer.concat(parts).toString().split('\n')
    if (lines.at(-1) === '') lines.pop()
    if (lines.length > ROWS_MAX)
      throw new Failure('too_large', { message: `The answer has over ${ROWS_MAX} rows; narrow the question.` })
    return lines.map((line) => JSON.parse(line) as R)
  }

  async examine(): Promise<Examination> {
    const asWriter = async (sql: string) => {
      const asked = { query: sql, format: 'JSONEachRow', clickhouse_settings: this.durable() } as const
      return (await this.writer.query({ ...asked, abort_signal: this.abort.signal })).json<{
        name: string
        value: string
      }>()
    }
    return { settings: await examineHistory(this, asWriter) }
  }

  ping(): Promise<void> {
    return this.liveness.ping()
  }

  async close(): Promise<void> {
    if (this.abort.signal.aborted) return
    this.abort.abort()
    await Promise.all([this.reader, this.writer, this.liveness].map((client) => client.close()))
  }

  /** Settings that make a write durable before it is answered. */
  private durable(): ClickHouseSettings {
    return {
      // Newer servers would answer before an insert is durable.
      async_insert: 0,
      max_partitions_per_insert_block: '0',
      max_memory_usage: String(QUERY_BYTES_MAX),
      distributed_foreground_insert: 1,
      wait_end_of_query: 1,
      ...(this.cluster !== undefined && { insert_quorum: 'auto', ...NEAREST }),
    }
  }

  private async write(run: () => Promise<unknown>): Promise<void> {
    if (this.abort.signal.aborted) throw historyDown()
    if (this.writes >= this.queueMax)
      throw new Failure('overloaded', { message: 'Too many writes wait for the history.', retryAfterSeconds: 1 })
    this.writes++
    try {
      await run()
    } catch (error) {
      throw failureOf(error)
    } finally {
      this.writes--
    }
  }

  private async *stream(
    query: string,
    parameters: HistoryParameters | undefined,
    limits: object,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    signal?.throwIfAborted()
    if (this.abort.signal.aborted) throw historyDown()
    if (this.queries >= this.queueMax)
      throw new Failure('overloaded', { message: 'Too many queries of the history are open.', retryAfterSeconds: 1 })
    this.queries++
    const gone = new AbortController()
    const giveUp = (): void => gone.abort()
    const ended = anyAborted(this.abort.signal, gone.signal, ...(signal === undefined ? [] : [signal]))
    let body: Readable | undefined
    const onAbort = (): void => void body?.destroy(new Error('ended by the reader'))
    ended.signal.addEventListener('abort', onAbort)
    try {
      const answer = await this.liveness.whileAlive(this.ask(query, parameters, limits, ended.signal), giveUp)
      body = answer.stream
      if (ended.signal.aborted) onAbort()
      yield* checkedBody(this.liveness.watched(body, giveUp), answer.tag)
    } catch (error) {
      signal?.throwIfAborted()
      throw gone.signal.aborted ? historyDown(new Error('it answers neither the query nor a ping')) : failureOf(error)
    } finally {
      ended.release()
      // Destroying an unfinished body closes its connection, and the server then ends the query.
      body?.destroy()
      this.queries--
    }
  }

  private async ask(
    query: string,
    parameters: HistoryParameters | undefined,
    limits: object,
    signal: AbortSignal,
  ): Promise<{ stream: Readable; tag: string | undefined }> {
    const asked = {
      query,
      query_id: randomUUID(),
      abort_signal: signal,
      clickhouse_settings: {
        ...limits,
        output_format_json_quote_64bit_integers: 0,
        // Only for read-only queries does the server end a query whose client leaves.
        readonly: '2',
        cancel_http_readonly_queries_on_client_close: 1,
        http_send_timeout: 300,
        // Servers before 25.11 would end a broken answer with a row about it: it would pass for one of the answer.
        http_write_exception_in_output_format: 0,
        max_memory_usage: String(QUERY_BYTES_MAX),
        max_bytes_before_external_sort: String(QUERY_BYTES_MAX >> 2),
        max_bytes_before_external_group_by: String(QUERY_BYTES_MAX >> 2),
        // Rows that belong together are on one shard, so each answers for its own.
        distributed_product_mode: 'local',
        ...(this.cluster !== undefined && NEAREST),
      } as const,
    }
    const { stream, response_headers } = isLong(parameters)
      ? await this.reader.exec({ ...asked, ...multipartOf(query, parameters as HistoryParameters) })
      : await this.reader.exec({ ...asked, query_params: parameters as Record<string, unknown> })
    const tag = response_headers['x-clickhouse-exception-tag']
    return { stream: stream as Readable, tag: typeof tag === 'string' ? tag : undefined }
  }
}

const isLong = (parameters: HistoryParameters | undefined): boolean =>
  parameters !== undefined && parametersBytes(parameters) > URL_PARAMETERS_BYTES_MAX
