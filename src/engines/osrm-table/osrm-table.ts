import { Agent } from 'undici'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { type TravelPlace, type TravelTable, type TravelTimes, UNREACHABLE } from '../travel-times.ts'

export interface OsrmOptions {
  /** `http(s)://host:port`, with a path in front of `/table` where there is one. */
  url: string
  clock: Clock
  /** For one request. */
  deadlineMs?: number
}

const DEADLINE_MS = 15_000
/** Places of one side of a request; a server with a lower limit (`--max-table-size`) says `TooBig`: they are halved. */
const SIDE_PLACES = 50
const SIDE_PLACES_MIN = 5
const AT_ONCE = 4
const TRIES = 3
const RETRY_MS = 500
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

interface TableAnswer {
  code?: string
  message?: string
  distances?: (number | null)[][]
  durations?: (number | null)[][]
}

interface Block {
  from: number
  to: number
  size: number
}

class TooBig extends Error {}

/** The table service of an OSRM server, asked block by block. */
export const openOsrmTable = (options: OsrmOptions): TravelTimes => new OsrmTable(options)

class OsrmTable implements TravelTimes {
  private readonly base: URL
  private readonly clock: Clock
  private readonly deadlineMs: number
  private readonly agent = new Agent({ connections: AT_ONCE, headersTimeout: 0, bodyTimeout: 0 })
  private side = SIDE_PLACES

  constructor({ url, clock, deadlineMs = DEADLINE_MS }: OsrmOptions) {
    this.base = new URL(url)
    this.clock = clock
    this.deadlineMs = deadlineMs
  }

  async table(places: readonly TravelPlace[], signal: AbortSignal): Promise<TravelTable> {
    for (;;)
      try {
        return await this.fill(places, this.side, signal)
      } catch (error) {
        if (!(error instanceof TooBig)) throw error
        this.side = Math.max(SIDE_PLACES_MIN, Math.floor(this.side / 2))
      }
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }

  private async fill(places: readonly TravelPlace[], size: number, signal: AbortSignal): Promise<TravelTable> {
    const cells = places.length ** 2
    const table = { distances: new Float32Array(cells), durations: new Float32Array(cells) }
    const blocks: Block[] = []
    for (let from = 0; from < places.length; from += size)
      for (let to = 0; to < places.length; to += size) blocks.push({ from, to, size })
    const end = new AbortController()
    const both = AbortSignal.any([signal, end.signal])
    const work = async (): Promise<void> => {
      for (let block = blocks.shift(); block !== undefined; block = blocks.shift())
        write(table, places.length, block, await this.ask(places, block, both))
    }
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, work))
    } finally {
      end.abort(new Error('another request failed'))
    }
    return table
  }

  private async ask(places: readonly TravelPlace[], block: Block, signal: AbortSignal): Promise<TableAnswer> {
    const path = pathOf(this.base, places, block)
    for (let tries = 1; ; tries++)
      try {
        return await this.get(path, signal)
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (error instanceof TooBig && block.size > SIDE_PLACES_MIN) throw error
        if (tries === TRIES) throw new Failure('engine_down', { message: `The OSRM server ${said(error)}.` })
        await new Promise<void>((resolve) => void this.clock.after(RETRY_MS, resolve))
      }
  }

  private async get(path: string, signal: AbortSignal): Promise<TableAnswer> {
    const { deadlineMs } = this
    const deadline = new AbortController()
    const cancel = this.clock.after(deadlineMs, () =>
      deadline.abort(new Error(`did not answer within ${deadlineMs} ms`)),
    )
    try {
      const { body, statusCode } = await this.agent.request({
        origin: this.base.origin,
        path,
        method: 'GET',
        signal: AbortSignal.any([signal, deadline.signal]),
      })
      const answer = parse(await read(body, statusCode), statusCode)
      if (answer.code === 'TooBig') throw new TooBig('answered that few places are too many')
      if (statusCode === 200 && answer.code === 'Ok') return answer
      throw new Error(`answered ${statusCode} ${answer.code ?? ''} ${answer.message ?? ''}`.slice(0, 200).trim())
    } finally {
      cancel()
    }
  }
}

const pathOf = (base: URL, places: readonly TravelPlace[], { from, to, size }: Block): string => {
  const sources = places.slice(from, from + size)
  const targets = from === to ? [] : places.slice(to, to + size)
  const positions = [...sources, ...targets].map(({ lat, lng }) => `${lng.toFixed(6)},${lat.toFixed(6)}`).join(';')
  const indexes = (begin: number, count: number): string => Array.from({ length: count }, (_, i) => begin + i).join(';')
  const sides =
    targets.length === 0
      ? ''
      : `&sources=${indexes(0, sources.length)}&destinations=${indexes(sources.length, targets.length)}`
  return `${base.pathname.replace(/\/$/, '')}/table/v1/driving/${positions}?annotations=duration,distance${sides}`
}

/** @throws Error for an answer of another form */
const write = (table: TravelTable, places: number, { from, to, size }: Block, answer: TableAnswer): void => {
  for (const name of ['distances', 'durations'] as const) {
    const rows = answer[name]
    const height = Math.min(size, places - from)
    const width = Math.min(size, places - to)
    if (!Array.isArray(rows) || rows.length !== height) throw malformed(name)
    for (let i = 0; i < height; i++) {
      if (!Array.isArray(rows[i]) || rows[i].length !== width) throw malformed(name)
      for (let j = 0; j < width; j++) {
        const value = rows[i][j]
        if (value !== null && !(typeof value === 'number' && value >= 0 && value < UNREACHABLE)) throw malformed(name)
        table[name][(from + i) * places + to + j] = value ?? UNREACHABLE
      }
    }
  }
}

const malformed = (name: string): Failure =>
  new Failure('engine_down', {
    message: `The OSRM server answered a table whose ${name} are not of the size asked for.`,
  })

const read = async (body: AsyncIterable<Uint8Array>, status: number): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`answered ${status} with more than ${ANSWER_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const parse = (text: string, status: number): TableAnswer => {
  try {
    return { ...(JSON.parse(text) as TableAnswer) }
  } catch {
    throw new Error(`answered ${status} with what is no JSON`)
  }
}

const said = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  return /^(answered|did not)/.test(message) ? message : `cannot be reached (${message.slice(0, 150)})`
}
