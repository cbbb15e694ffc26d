import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { HttpResponse } from 'uWebSockets.js'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import { breathe, inSlices } from '../kernel/breath.ts'

/** Share of it that one network may hold: a sender of many half bodies leaves some to others. */
const OWN_SHARE = 3 / 4

/** Bytes of all bodies that are in memory at one time. */
export class BodyBudget {
  private readonly bytesMax: number
  private held = 0
  private readonly heldBy = new Map<string, number>()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  take(bytes: number, network: string): boolean {
    const own = (this.heldBy.get(network) ?? 0) + bytes
    if (this.held + bytes > this.bytesMax || own > this.bytesMax * OWN_SHARE) return false
    this.held += bytes
    this.heldBy.set(network, own)
    return true
  }

  release(bytes: number, network: string): void {
    if (bytes === 0) return
    this.held -= bytes
    const left = (this.heldBy.get(network) ?? 0) - bytes
    if (left > 0) this.heldBy.set(network, left)
    else this.heldBy.delete(network)
  }
}

export interface BodyOptions {
  clock: Clock
  budget: BodyBudget
  network: string
  bytesMax: number
  timeoutMs: number
  /** It is read as a stream (`pieces`): the client is held back while too much of it waits. */
  isStreamed?: boolean
}

/** Bytes of a streamed body that may wait, beside those that the socket hands over at once. */
const AHEAD_BYTES_MAX = 256 * 1024
const SLOWEST_BYTES_PER_MS = 32
/** A larger body is read in slices. */
const BYTES_AT_ONCE = 1024 * 1024
/** Smaller chunks are joined, `SMALL_MAX` in a row: each may hold one byte, and a chunk takes some 150 in memory. */
const SMALL_BYTES = 1024
const SMALL_MAX = 256
/** uWebSockets.js cuts a connection that sends nothing for 10 s after it was resumed. */
const KEPT_OPEN_MS = 5_000

/**
 * Collects the body of a request: chunks are kept and joined once, at the end, or handed on as they arrive. Bytes over
 * the limit are counted and discarded. It must be made before the first await of the request.
 */
export class BodyReader {
  private readonly options: BodyOptions
  private readonly res: HttpResponse
  private readonly startedAt: number
  private chunks: Buffer[] = []
  private heldBytes = 0
  /** Small chunks since the last joined or larger one. */
  private smallChunks = 0
  private receivedBytes = 0
  /** Received bytes beyond which discarding gives up. */
  private receivedMax = Number.POSITIVE_INFINITY
  private readonly declaredBytes: number | undefined
  private failure: Failure | undefined
  private ended = false
  private over = false
  private isPaused = false
  private wake: (() => void)[] = []
  private cancelTimer: (() => void) | undefined

  constructor(res: HttpResponse, declaredBytes: number | undefined, options: BodyOptions) {
    this.options = options
    this.res = res
    this.startedAt = options.clock.monotonic()
    this.declaredBytes = declaredBytes
    if (declaredBytes !== undefined && declaredBytes > options.bytesMax) this.fail(tooLarge(options.bytesMax))
    res.onData((chunk, isLast) => this.take(chunk, isLast))
  }

  /** Most bytes that are taken. */
  get bytesMax(): number {
    return this.options.bytesMax
  }

  get complete(): boolean {
    return this.ended
  }

  /** @throws Failure `too_large`, `overloaded`, or `invalid` with status 408 for one that takes too long. */
  async bytes(): Promise<Buffer> {
    while (!this.ended && this.failure === undefined) await this.changed()
    if (this.failure !== undefined) throw this.failure
    // The chunks are released, so that a body is not in memory twice while its request runs.
    if (this.chunks.length !== 1) this.chunks = [await joined(this.chunks, this.heldBytes)]
    return this.chunks[0]
  }

  /** The bytes as they arrive; each is handed out once. @throws Failure as `bytes` */
  async *pieces(): AsyncGenerator<Buffer> {
    for (;;) {
      const piece = this.chunks.shift()
      if (piece !== undefined) {
        this.heldBytes -= piece.byteLength
        this.options.budget.release(piece.byteLength, this.options.network)
        if (this.heldBytes < AHEAD_BYTES_MAX) this.resume()
        yield piece
      } else if (this.failure !== undefined) throw this.failure
      else if (this.ended) return
      else await this.changed()
    }
  }

  /** Discards further bytes, up to `bytesMax`. Answers whether that was all; false at once where more is declared. */
  async discarded(bytesMax: number): Promise<boolean> {
    this.drop()
    this.failure ??= new Failure('internal', { message: 'The body is not wanted any more.' })
    this.receivedMax = this.receivedBytes + bytesMax
    if (this.declaredBytes !== undefined && this.declaredBytes > this.receivedMax) return false
    while (!this.ended && !this.over && this.receivedBytes <= this.receivedMax) await this.changed()
    return this.ended
  }

  /** The request has ended: the memory of its body no longer counts. */
  release(): void {
    this.cancelTimer?.()
    this.over = true
    if (!this.ended) this.failure ??= new Failure('internal', { message: 'The client is gone.' })
    this.drop()
    this.wakeAll()
  }

  private take(chunk: ArrayBuffer, isLast: boolean): void {
    this.receivedBytes += chunk.byteLength
    if (this.failure === undefined && !this.over && chunk.byteLength > 0) this.keep(chunk)
    if (isLast) {
      this.ended = true
      this.cancelTimer?.()
    }
    if (isLast || this.options.isStreamed === true || this.receivedBytes > this.receivedMax) this.wakeAll()
  }

  private keep(chunk: ArrayBuffer): void {
    if (this.receivedBytes > this.options.bytesMax) return this.fail(tooLarge(this.options.bytesMax))
    if (!this.options.budget.take(chunk.byteLength, this.options.network))
      return this.fail(new Failure('overloaded', { retryAfterSeconds: 1 }))
    this.heldBytes += chunk.byteLength
    // The chunk's memory is reclaimed when the callback returns.
    this.chunks.push(Buffer.from(new Uint8Array(chunk)))
    this.smallChunks = chunk.byteLength < SMALL_BYTES ? this.smallChunks + 1 : 0
    if (this.smallChunks === SMALL_MAX) this.joinSmall()
    if (this.options.isStreamed !== true || this.isPaused || this.heldBytes < AHEAD_BYTES_MAX) return
    this.isPaused = true
    this.res.pause()
  }

  private joinSmall(): void {
    // Some of those that are streamed may be gone.
    this.chunks.push(Buffer.concat(this.chunks.splice(-this.smallChunks)))
    this.smallChunks = 0
  }

  private resume(): void {
    if (!this.isPaused || this.over) return
    this.isPaused = false
    this.res.resume()
    if (this.ended) this.keepOpen()
  }

  /** Nothing comes after the last bytes, however long the request runs: each pause begins the time anew. */
  private keepOpen(): void {
    this.cancelTimer = this.options.clock.after(KEPT_OPEN_MS, () => {
      this.res.pause()
      this.res.resume()
      this.keepOpen()
    })
  }

  private checkTime(): void {
    const allowedMs = this.options.timeoutMs + this.receivedBytes / SLOWEST_BYTES_PER_MS
    const leftMs = this.startedAt + allowedMs - this.options.clock.monotonic()
    if (leftMs > 0) {
      this.cancelTimer = this.options.clock.after(Math.max(leftMs, 10), () => this.checkTime())
      return
    }
    this.over = true
    this.fail(new Failure('invalid', { status: 408, message: 'The body did not arrive in time.' }))
  }

  private fail(failure: Failure): void {
    this.failure ??= failure
    this.drop()
    this.wakeAll()
  }

  private drop(): void {
    this.options.budget.release(this.heldBytes, this.options.network)
    this.heldBytes = 0
    this.chunks = []
    this.resume()
  }

  private changed(): Promise<void> {
    // Most bodies are complete before anyone waits for them: those need no timer.
    this.cancelTimer ??= this.options.clock.after(this.options.timeoutMs, () => this.checkTime())
    return new Promise((resolve) => this.wake.push(resolve))
  }

  private wakeAll(): void {
    for (const resolve of this.wake.splice(0)) resolve()
  }
}

/** All chunks in one piece of memory. Tens of megabytes are copied over several turns. */
const joined = async (chunks: readonly Buffer[], bytes: number): Promise<Buffer> => {
  const all = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const chunk of chunks) {
    const pause = bytes > BYTES_AT_ONCE ? breathe() : undefined
    if (pause !== undefined) await pause
    all.set(chunk, at)
    at += chunk.byteLength
  }
  return all
}

/** A short one might occur anywhere. */
const BOUNDARY = /^multipart\/form-data\s*;.*\bboundary="?([^\s";]{8,70})/i

/** SHA-256 in base64url, of a form without its boundary: clients draw another one when they resend a form. */
export const hashOf = async (body: Buffer, contentType = ''): Promise<string> => {
  const hash = createHash('sha256')
  const boundary = BOUNDARY.exec(contentType)?.[1]
  const find = (from: number): number => {
    const found = boundary === undefined ? -1 : body.indexOf(boundary, from, 'latin1')
    return found < 0 ? body.length : found
  }
  let next = find(0)
  await inSlices(body.length, (from) => {
    if (from < next) {
      const to = Math.min(from + BYTES_AT_ONCE, next)
      hash.update(body.subarray(from, to))
      return to
    }
    const after = from + (boundary?.length ?? 0)
    next = find(after)
    return after
  })
  return hash.digest('base64url')
}

const tooLarge = (bytesMax: number): Failure =>
  new Failure('too_large', { message: `The body is larger than ${bytesMax} bytes.` })
