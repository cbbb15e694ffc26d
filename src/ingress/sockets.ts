import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { Caller } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import { CLOSE, type Channel } from '../kit/http/channel.ts'
import type { AddressOf, ClientAddress } from './address.ts'
import type { Admission } from './authenticate.ts'
import type { Credential } from './connection-options.ts'
import { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import { Places, rateLimitHeaders } from './limits.ts'
import type { AccessChange, IngressLimits, IngressOptions } from './options.ts'
import { answerFailure, refuseAtOnce, sendAnswer } from './reply.ts'

export interface SocketOptions
  extends Pick<IngressOptions, 'accessChanged' | 'authenticate' | 'clock' | 'logger' | 'metrics'> {
  admission: Admission
  limits: IngressLimits
  /** The connection of a WebSocket is free again. */
  released(): void
  addressOf: AddressOf
}

interface UserData {
  connection: Connection
}

/** Larger frames are cut by uWebSockets.js without a code; smaller ones that are too large get theirs from the connection. */
const PAYLOAD_BYTES_MAX = 16 * 1024 * 1024
/** Channels stop sending long before; a socket that gets here is closed, so that no message is dropped silently. */
const BACKPRESSURE_BYTES_MAX = 16 * 1024 * 1024
const LOOKUPS_AT_ONCE = 32

/** Opens sockets, counts them, and has them looked up again when someone's access changes. */
export class SocketDoor {
  isClosing = false
  private readonly options: SocketOptions
  private readonly waiting: Places
  private readonly all = new Set<Connection>()
  private readonly byOrganization = new Map<string, Set<Connection>>()
  /** Connections to look up; each once. */
  private readonly due = new Set<Connection>()
  private lookups = 0
  private changes = 0
  /** Argument of the last `open`. */
  private newest: WebSocket<UserData> | undefined
  private readonly unsubscribe: () => void

  constructor(options: SocketOptions) {
    this.options = options
    this.waiting = new Places(options.limits.unauthenticatedPerAddressMax, options.limits.unauthenticatedMax)
    this.unsubscribe = options.accessChanged((change) => this.accessChanged(change))
  }

  private readonly note = (ws: WebSocket<UserData> | undefined): void => {
    this.newest = ws
  }

  behaviorOf(channel: Channel): WebSocketBehavior<UserData> {
    return {
      maxPayloadLength: PAYLOAD_BYTES_MAX,
      maxBackpressure: BACKPRESSURE_BYTES_MAX,
      closeOnBackpressureLimit: true,
      idleTimeout: this.options.limits.socketIdleSeconds,
      sendPingsAutomatically: true,
      upgrade: (res, req, context) => this.upgrade(channel, res, req, context),
      open: this.note,
      message: (ws, data, isBinary) => ws.getUserData().connection.message(data, isBinary),
      drain: (ws) => ws.getUserData().connection.drained(),
      close: (ws) => {
        this.options.metrics.sockets.dec(labelOf(channel))
        this.options.released()
        ws.getUserData().connection.ended()
      },
    }
  }

  /** Tells every client to connect again, elsewhere or later. */
  closeAll(): void {
    this.unsubscribe()
    for (const connection of [...this.all]) connection.close(CLOSE.restart, 'the service restarts')
  }

  private upgrade(channel: Channel, res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void {
    const exchange = new Exchange(res, req, this.options.addressOf)
    if (exchange.fault !== undefined) return refuseAtOnce(exchange, exchange.fault)
    const token = exchange.bearer
    try {
      if (exchange.headers.get('connection')?.toLowerCase() === 'close')
        throw new Failure('invalid', { message: 'A WebSocket needs Connection: Upgrade, not close.' })
      if (this.isClosing) throw new Failure('overloaded', { retryAfterSeconds: 1 })
      this.options.admission.countAddress(exchange)
      if (token !== undefined) return void this.upgradeWith(token, channel, exchange, context)
      if (!this.waiting.take(exchange.client.network)) throw new Failure('rate_limited', { retryAfterSeconds: 5 })
    } catch (error) {
      return this.refuse(exchange, error)
    }
    this.accept(channel, exchange, context, this.connectionOf(channel, exchange.client, true))
  }

  private async upgradeWith(
    token: string,
    channel: Channel,
    exchange: Exchange,
    context: us_socket_context_t,
  ): Promise<void> {
    const changes = this.changes
    let caller: Caller
    try {
      caller = await this.options.admission.identify(token, exchange.allowances)
    } catch (error) {
      return this.refuse(exchange, error)
    }
    if (exchange.over) return
    const connection = this.connectionOf(channel, exchange.client, false, { token, caller })
    this.accept(channel, exchange, context, connection)
    if (changes !== this.changes) this.lookUp(connection)
  }

  /**
   * `cork` of uWebSockets.js 20 does not see that a late upgrade made its response a WebSocket where that stayed at its
   * address: it goes on to read the response's flags behind the smaller WebSocket, in freed memory, and closes the
   * socket if they are set so (uWebSockets 1929). So `open` must not allocate: it only notes the socket, and is called
   * beforehand, as compiling it allocates too.
   */
  private accept(channel: Channel, exchange: Exchange, context: us_socket_context_t, connection: Connection): void {
    const { res, headers } = exchange
    this.all.add(connection)
    exchange.finish()
    const header = (name: string): string => headers.get(`sec-websocket-${name}`) ?? ''
    this.note(undefined)
    res.cork(() =>
      res.upgrade<UserData>({ connection }, header('key'), header('protocol'), header('extensions'), context),
    )
    this.options.metrics.sockets.inc(labelOf(channel))
    const ws = this.newest
    this.newest = undefined
    if (ws !== undefined) connection.opened(ws)
  }

  private refuse(exchange: Exchange, error: unknown): void {
    if (!(error instanceof Failure))
      this.options.logger.error('an upgrade failed unexpectedly', { error: String((error as Error).stack ?? error) })
    sendAnswer(exchange, answerFailure(error instanceof Failure ? error : new Failure('internal')), {
      headers: rateLimitHeaders(exchange.allowances) ?? {},
      closeConnection: true,
    })
  }

  private connectionOf(
    channel: Channel,
    { address, network }: ClientAddress,
    isWaiting: boolean,
    credential?: Credential,
  ): Connection {
    const { clock, logger, limits, admission } = this.options
    let holdsPlace = isWaiting
    const releasePlace = (): void => {
      if (holdsPlace) this.waiting.release(network)
      holdsPlace = false
    }
    let changes = this.changes
    const connection: Connection = new Connection(
      {
        channel,
        address,
        clock,
        logger,
        authTimeoutMs: limits.authTimeoutMs,
        authenticate: (token): Promise<Caller> => {
          changes = this.changes
          return connection.credential === undefined ? admission.identify(token) : this.options.authenticate(token)
        },
        authenticated: () => {
          releasePlace()
          this.index(connection)
          // This connection missed changes of access during the lookup of its credential.
          if (changes !== this.changes) this.lookUp(connection)
        },
        closed: () => {
          releasePlace()
          this.forget(connection)
        },
      },
      credential,
    )
    return connection
  }

  private index(connection: Connection): void {
    const organizationId = connection.credential?.caller.organizationId as string
    const members = this.byOrganization.get(organizationId) ?? new Set()
    this.byOrganization.set(organizationId, members.add(connection))
  }

  private forget(connection: Connection): void {
    this.all.delete(connection)
    this.due.delete(connection)
    const organizationId = connection.credential?.caller.organizationId
    if (organizationId === undefined) return
    const members = this.byOrganization.get(organizationId)
    members?.delete(connection)
    if (members?.size === 0) this.byOrganization.delete(organizationId)
  }

  private accessChanged(change: AccessChange): void {
    this.changes++
    for (const connection of this.byOrganization.get(change.organizationId) ?? []) {
      if (!concerns(change, connection)) continue
      if (change.graceMs === undefined) this.lookUp(connection)
      else this.lookUpLater(connection, change, change.graceMs)
    }
  }

  /** Other changes in the meantime must not end the grace, nor must a token that came in time. */
  private lookUpLater(connection: Connection, change: AccessChange, graceMs: number): void {
    const { clock } = this.options
    const graceUntil = clock.monotonic() + graceMs
    connection.graceUntil = graceUntil
    clock.after(graceMs, () => {
      // A timer may be a millisecond early: the grace ends with it, not with the time.
      if (connection.graceUntil === graceUntil) connection.graceUntil = 0
      if (concerns(change, connection)) this.lookUp(connection)
    })
  }

  private lookUp(connection: Connection): void {
    this.due.add(connection)
    while (this.lookups < LOOKUPS_AT_ONCE && this.due.size > 0) {
      const [next] = this.due
      this.due.delete(next)
      this.lookups++
      void next.lookUp().finally(() => {
        this.lookups--
        const [another] = this.due
        if (another !== undefined) this.lookUp(another)
      })
    }
  }
}

const labelOf = (channel: Channel): { channel: string } => ({ channel: channel.path.slice(1) })

const concerns = (change: AccessChange, { credential }: Connection): boolean => {
  const caller = credential?.caller
  if (caller === undefined) return false
  if (change.userId !== undefined && !(caller.kind === 'user' && caller.userId === change.userId)) return false
  if (change.jti !== undefined && !(caller.kind === 'user' && caller.jti === change.jti)) return false
  if (change.trackerId !== undefined && !(caller.kind === 'tracker' && caller.trackerId === change.trackerId))
    return false
  return change.keyId === undefined || (caller.kind === 'ingestKey' && caller.keyId === change.keyId)
}
