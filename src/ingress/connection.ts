import type { WebSocket } from 'uWebSockets.js'
import { BoundedQueue } from '../kernel/bounded-queue.ts'
import { Failure } from '../kernel/errors.ts'
import { credentialKindOf, lacksSecondFactor } from '../kernel/caller.ts'
import { TokenBucket } from '../kernel/token-bucket.ts'
import { CLOSE, type ChannelConnection, type ChannelSocket } from '../kit/http/channel.ts'
import { identityOf } from './authenticate.ts'
import type { ConnectionOptions, Credential } from './connection-options.ts'
import { type AuthFrame, readAuthFrame, readFirstFrame } from './auth-frame.ts'

/** Answer of `send` of uWebSockets.js above its limit of backpressure. */
const DROPPED = 2
const FRAME_BYTES_MAX = 1024 * 1024
/** Frames that a client sends right after its first `auth`; more of them close it with 4429. */
const HELD_FRAMES_MAX = 64
const HELD_BYTES_MAX = 1024 * 1024
/** New `auth` messages of one connection, on average and at once: each is looked up, whatever the channel's limits. */
const RENEWALS_PER_SECOND = 10
const RENEWALS_AT_ONCE = 100
const TIMER_MS_MAX = 2 ** 31 - 1
const LACKING = 'the organization asks for a second factor; set it up first'
const LOOKUP_RETRY_MS = 1_000
const LOOKUP_TRIES_MAX = 30

/** One WebSocket: authenticates it, keeps it authenticated, and hands everything else to its channel. */
export class Connection {
  credential: Credential | undefined
  /** Until then (monotonic, ms) an invalid credential closes nothing. */
  graceUntil = Number.NEGATIVE_INFINITY
  private readonly options: ConnectionOptions
  private ws: WebSocket<unknown> | undefined
  private inner: ChannelConnection | undefined
  private isClosed = false
  private isChecking = false
  private readonly held = new BoundedQueue<{ data: ArrayBuffer; isBinary: boolean }>(HELD_FRAMES_MAX, HELD_BYTES_MAX)
  private wantedToken: string | undefined
  private lookUpsAsked = 0
  private lookUpFailures = 0
  private lookingUp: Promise<void> | undefined
  /** Made at the first one: most connections never renew. */
  private renewals: TokenBucket | undefined
  private cancelTimer = (): void => undefined

  /** With a credential that was checked at the upgrade, or without one: then the first message has to bring it. */
  constructor(options: ConnectionOptions, credential?: Credential) {
    this.options = options
    this.credential = credential
  }

  opened(ws: WebSocket<unknown>): void {
    if (this.isClosed) return
    this.ws = ws
    if (this.credential !== undefined) return this.begin(this.credential)
    this.cancelTimer = this.options.clock.after(this.options.authTimeoutMs, () =>
      this.close(CLOSE.authTimeout, 'no auth message in time'),
    )
  }

  message(data: ArrayBuffer, isBinary: boolean): void {
    if (this.isClosed) return
    if (data.byteLength > FRAME_BYTES_MAX) return this.close(CLOSE.tooLarge, 'the frame is too large')
    if (this.inner === undefined) return this.first(data, isBinary)
    const auth = isBinary ? undefined : readAuthFrame(data)
    if (auth !== undefined) return this.renew(auth)
    this.guarded(() => this.inner?.message(data, isBinary))
  }

  drained(): void {
    this.guarded(() => this.inner?.drain())
  }

  /** The socket is gone, closed by either side. */
  ended(): void {
    this.isClosed = true
    this.cancelTimer()
    this.ws = undefined
    this.options.closed()
    const inner = this.inner
    this.inner = undefined
    this.guarded(() => inner?.closed())
  }

  close(code: number, reason: string): void {
    if (this.isClosed) return
    this.isClosed = true
    this.ws?.end(code, reason)
  }

  /**
   * Looks the caller and their rights up again: gone or revoked closes with 4401. What is asked for during a look-up is
   * looked up after it: it may have read what was before. Never rejects.
   */
  lookUp(): Promise<void> {
    this.lookUpsAsked++
    this.lookingUp ??= this.lookUpAll()
    return this.lookingUp
  }

  private async lookUpAll(): Promise<void> {
    for (let done = -1; done !== this.lookUpsAsked && !this.isClosed; ) {
      done = this.lookUpsAsked
      await this.lookUpOnce()
    }
    this.lookingUp = undefined
  }

  private async lookUpOnce(): Promise<void> {
    const credential = this.credential
    if (credential === undefined) return
    try {
      const caller = await this.options.authenticate(credential.token)
      if (this.credential === credential) this.authorize({ token: credential.token, caller })
      this.lookUpFailures = 0
    } catch (error) {
      if (this.credential === credential) this.notLookedUp(error)
    }
  }

  private notLookedUp(error: unknown): void {
    const { clock, logger } = this.options
    const isInvalid = error instanceof Failure && error.status === 401
    if (this.isClosed || (isInvalid && clock.monotonic() < this.graceUntil)) return
    if (isInvalid) return this.close(CLOSE.unauthenticated, 'the credential is no longer valid')
    const tries = this.lookUpFailures++
    logger.warn('a socket could not be looked up anew', { error: String(error), tries })
    if (tries >= LOOKUP_TRIES_MAX) return this.close(CLOSE.restart, 'the credential could not be checked')
    clock.after(LOOKUP_RETRY_MS, () => void this.lookUp())
  }

  private first(data: ArrayBuffer, isBinary: boolean): void {
    if (this.isChecking) {
      if (!this.held.push({ data: data.slice(0), isBinary }, data.byteLength))
        this.close(CLOSE.tooFast, 'wait for the answer to auth')
      return
    }
    const frame = readFirstFrame(data, isBinary)
    if (frame.kind === 'bad') return this.close(CLOSE.badMessage, 'not a message of this channel')
    const { token, fault } = frame.kind === 'auth' ? frame.auth : {}
    if (!this.maySignIn()) return this.close(CLOSE.tooFast, `at most ${RENEWALS_PER_SECOND} auth messages a second`)
    if (fault !== undefined) return this.sendError('invalid', fault)
    if (token === undefined) return this.close(CLOSE.unauthenticated, 'send an auth message first')
    this.isChecking = true
    this.cancelTimer()
    void this.checkFirst(token)
  }

  private async checkFirst(token: string): Promise<void> {
    try {
      const caller = await this.options.authenticate(token)
      if (!this.isClosed) this.begin({ token, caller })
    } catch (error) {
      this.refuse(error)
    }
  }

  private begin(credential: Credential): void {
    const { channel } = this.options
    this.credential = credential
    if (!channel.accepts.includes(credentialKindOf(credential.caller)))
      return this.close(CLOSE.forbidden, 'this credential does not open this channel')
    if (lacksSecondFactor(credential.caller)) return this.close(CLOSE.forbidden, LACKING)
    this.options.authenticated()
    this.watchExpiry()
    this.guarded(() => {
      this.inner = channel.open(this.socket(), credential.caller)
    })
    for (let frame = this.held.shift(); frame !== undefined; frame = this.held.shift())
      this.message(frame.data, frame.isBinary)
  }

  /** Counts one `auth` message. */
  private maySignIn(): boolean {
    const now = this.options.clock.monotonic()
    this.renewals ??= new TokenBucket(RENEWALS_PER_SECOND, now, RENEWALS_AT_ONCE)
    return this.renewals.take(1, now)
  }

  /** A new `auth` in mid-stream. Of several that come during a check, the last counts. */
  private renew({ token, fault }: AuthFrame): void {
    if (!this.maySignIn()) return this.close(CLOSE.tooFast, `at most ${RENEWALS_PER_SECOND} auth messages a second`)
    if (fault !== undefined) return this.sendError('invalid', fault)
    if (token === undefined) return this.sendError('invalid', '/token is required')
    const isRenewing = this.wantedToken !== undefined
    this.wantedToken = token
    if (!isRenewing) void this.checkWanted()
  }

  private async checkWanted(): Promise<void> {
    for (let token = this.wantedToken; token !== undefined && !this.isClosed; token = this.wantedToken) {
      const asked = this.lookUpsAsked
      try {
        const caller = await this.options.authenticate(token)
        if (this.isClosed || this.credential === undefined) return
        if (identityOf(caller) !== identityOf(this.credential.caller))
          return this.close(CLOSE.forbidden, 'the token is of another user or organization')
        this.authorize({ token, caller })
        // They looked up the credential before, and this one may be of before what they were asked for.
        if (asked !== this.lookUpsAsked || this.lookingUp !== undefined) void this.lookUp()
      } catch (error) {
        if (error instanceof Failure && error.status !== 401) this.sendError(error.code, error.message)
        else this.refuse(error)
      }
      if (this.wantedToken === token) this.wantedToken = undefined
    }
  }

  private authorize(credential: Credential): void {
    if (this.isClosed) return
    if (lacksSecondFactor(credential.caller)) return this.close(CLOSE.forbidden, LACKING)
    this.credential = credential
    this.watchExpiry()
    this.guarded(() => this.inner?.reauthorized(credential.caller))
  }

  private refuse(error: unknown): void {
    if (error instanceof Failure && error.status === 401)
      return this.close(CLOSE.unauthenticated, 'the credential is not valid')
    if (error instanceof Failure && error.status === 429) return this.close(CLOSE.tooFast, 'too many requests')
    this.options.logger.warn('a socket could not be authenticated', { error: String(error) })
    this.close(CLOSE.restart, 'the credential could not be checked')
  }

  private watchExpiry(): void {
    this.cancelTimer()
    const caller = this.credential?.caller
    if (this.isClosed || caller?.kind !== 'user') return
    const now = this.options.clock.now()
    const leftMs = caller.expiresAt - now
    if (leftMs <= 0) return this.close(CLOSE.unauthenticated, 'the token has expired')
    const dueMs = (caller.secondFactorDueMs ?? Number.POSITIVE_INFINITY) - now
    if (dueMs <= 0) return void this.lookUp()
    this.cancelTimer = this.options.clock.after(Math.min(leftMs, dueMs, TIMER_MS_MAX), () => this.watchExpiry())
  }

  private sendError(code: string, message: string): void {
    this.send(JSON.stringify({ type: 'error', code, message }))
  }

  private socket(): ChannelSocket {
    const bufferedBytes = (): number => (this.isClosed ? 0 : (this.ws?.getBufferedAmount() ?? 0))
    return {
      send: (text) => this.send(text),
      bufferedBytes,
      close: (code, reason) => this.close(code, reason),
      address: this.options.address,
    }
  }

  private send(text: string): number {
    if (this.isClosed || this.ws === undefined) return 0
    if (this.ws.send(text, false) !== DROPPED) return this.ws.getBufferedAmount()
    this.close(CLOSE.tooFast, 'the client does not read')
    return 0
  }

  /** A fault of a channel costs this connection, not the process. */
  private guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.options.logger.error('a channel failed', {
        channel: this.options.channel.path,
        error: String((error as Error).stack ?? error),
      })
      this.close(CLOSE.internal, 'something went wrong on our side')
    }
  }
}
