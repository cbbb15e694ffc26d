// The live channel: subscribes, resumes after a break, and passes on messages.
import { Packer } from './columns.ts'
import type { Fix, LivePosition } from './position.ts'
import type { Connection, FromWorker, LiveEvent, Subscription, ToWorker } from './messages.ts'

const RETRY_MS = 500
const RETRY_MS_MAX = 15_000
/** How long received messages wait for more. */
const BATCH_MS = 100
/** Without any message this long after a probe, the connection is dead even if not closed. */
const SILENT_MS = 20_000
const ASK_MS = 10_000
/** After a sleep a probe must be answered sooner. */
const WOKE_MS = 4_000
/** Close codes of the server: the token is no longer valid, or is not allowed here. */
const UNAUTHENTICATED = 4401
const FORBIDDEN = 4403

export interface Socket {
  readyState: number
  send(text: string): void
  close(): void
  onopen: (() => void) | null
  onmessage: ((event: { data: string }) => void) | null
  onclose: ((event: { code: number }) => void) | null
}

export interface Surroundings {
  open(url: string): unknown
  later(run: () => void, ms: number): void
  tell(message: FromWorker): void
}

interface Heard {
  type: string
  id?: string
  cursor?: string
  more?: boolean
  positions?: LivePosition[]
  gone?: string[]
  channel?: string
  event?: { [member: string]: unknown }
}

const OPEN = 1
const MAP = 'map'
/** Apart from the map: a role that may not see geofences is refused the whole subscription. */
const FENCES = 'fences'
const FENCE_EVENTS = { channels: ['geofence'] }

export const openLive = (around: Surroundings): { hear(message: ToWorker): void } => new Live(around)

class Live {
  #around: Surroundings
  #socket: Socket | undefined
  #url = ''
  #token = ''
  #subscription: Subscription = { channels: [], interval: 1000 }
  /** By subscription. */
  #cursors = new Map<string, string>()
  #retryMs = RETRY_MS
  #isClosed = false
  #heardCount = 0
  #packer = new Packer()
  #fixes = new Map<string, Fix>()
  #gone = new Set<string>()
  #events: LiveEvent[] = []
  #isDue = false
  /** Positions of an incomplete snapshot. */
  #snapshot: Fix[] | undefined

  constructor(around: Surroundings) {
    this.#around = around
  }

  hear(message: ToWorker): void {
    if (message.type === 'open') {
      this.#url = message.url
      this.#token = message.token
      this.#subscription = message.subscription
      this.#isClosed = false
      this.#cursors.clear()
      this.#connect()
    } else if (message.type === 'token') {
      this.#token = message.token
      if (this.#socket?.readyState === OPEN) this.#send({ type: 'auth', token: message.token })
      else this.#connect()
    } else if (message.type === 'retry') {
      this.#retryMs = RETRY_MS
      if (this.#socket === undefined && !this.#isClosed) this.#connect()
    } else if (message.type === 'permissions') {
      if (this.#socket?.readyState === OPEN) this.#subscribe(FENCES, FENCE_EVENTS)
    } else if (message.type === 'woke') {
      this.#retryMs = RETRY_MS
      if (this.#socket?.readyState === OPEN) this.#probe(this.#socket, WOKE_MS)
      else this.#connect()
    } else {
      this.#isClosed = true
      this.#socket?.close()
    }
  }

  #connect(): void {
    if (this.#socket !== undefined || this.#isClosed) return
    const socket = this.#around.open(this.#url) as Socket
    this.#socket = socket
    socket.onopen = () => {
      this.#send({ type: 'auth', token: this.#token })
      this.#subscribe(MAP, this.#subscription)
      this.#subscribe(FENCES, FENCE_EVENTS)
      this.#watch(socket)
    }
    socket.onmessage = ({ data }) => {
      this.#heardCount++
      this.#take(JSON.parse(data) as Heard)
    }
    socket.onclose = ({ code }) => this.#closed(socket, code)
    // On a network that drops all packets it stays opening for minutes.
    this.#around.later(() => {
      if (socket !== this.#socket || socket.readyState === OPEN) return
      this.#closed(socket, 1006)
      socket.close()
    }, ASK_MS)
  }

  #subscribe(id: string, subscription: Partial<Subscription>): void {
    const since = this.#cursors.get(id)
    this.#send({ type: 'subscribe', id, ...subscription, ...(since !== undefined && { since }) })
  }

  #send(message: unknown): void {
    this.#socket?.send(JSON.stringify(message))
  }

  #closed(socket: Socket, code: number): void {
    if (socket !== this.#socket) return
    this.#socket = undefined
    this.#snapshot = undefined
    if (this.#isClosed) return
    if (code === UNAUTHENTICATED || code === FORBIDDEN) return this.#say('signed-out')
    this.#say('lost')
    this.#around.later(() => this.#connect(), this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX)
  }

  /** Probes repeatedly; a connection that was cut silently does not answer, and is closed. */
  #watch(socket: Socket): void {
    const count = this.#heardCount
    this.#around.later(() => {
      if (socket !== this.#socket) return
      if (this.#heardCount !== count) return this.#watch(socket)
      this.#probe(socket, SILENT_MS - ASK_MS, () => this.#watch(socket))
    }, ASK_MS)
  }

  /** An unknown id is answered with nothing or an error: either way bytes come back while the server is there. */
  #probe(socket: Socket, ms: number, isAlive: () => void = () => undefined): void {
    const count = this.#heardCount
    this.#send({ type: 'subscribe', id: 'alive', channels: ['positions'], trackerIds: [NOBODY] })
    this.#around.later(() => {
      if (socket !== this.#socket) return
      if (this.#heardCount !== count) return isAlive()
      this.#closed(socket, 1006)
      socket.close()
    }, ms)
  }

  #take(heard: Heard): void {
    if (heard.id === 'alive') return
    if (heard.id !== undefined && heard.cursor !== undefined) this.#cursors.set(heard.id, heard.cursor)
    if (heard.type === 'gap') this.#around.tell({ type: 'gap' })
    else if (heard.type === 'error' && heard.id === FENCES) this.#around.tell({ type: 'refused' })
    else if (heard.type === 'snapshot' && heard.id !== FENCES) this.#takeSnapshot(heard)
    else if (heard.type === 'positions') {
      for (const position of heard.positions ?? []) this.#fixes.set(position.trackerId, fixOf(position))
      for (const id of heard.gone ?? []) {
        this.#fixes.delete(id)
        this.#gone.add(id)
      }
      this.#handOnSoon()
    } else if (heard.type === 'event') {
      this.#events.push({ channel: heard.channel!, event: heard.event! })
      this.#handOnSoon()
    }
  }

  #takeSnapshot({ positions = [], more }: Heard): void {
    this.#snapshot ??= []
    for (const position of positions) this.#snapshot.push(fixOf(position))
    if (more === true) return
    this.#retryMs = RETRY_MS
    this.#fixes.clear()
    this.#gone.clear()
    const columns = this.#packer.pack(this.#snapshot)
    this.#around.tell({ type: 'positions', columns, gone: [], isSnapshot: true })
    this.#snapshot = undefined
    this.#say('live')
  }

  #handOnSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#around.later(() => {
      this.#isDue = false
      const [fixes, gone, events] = [[...this.#fixes.values()], [...this.#gone], this.#events]
      this.#fixes.clear()
      this.#gone.clear()
      this.#events = []
      if (fixes.length + gone.length > 0)
        this.#around.tell({ type: 'positions', columns: this.#packer.pack(fixes), gone, isSnapshot: false })
      if (events.length > 0) this.#around.tell({ type: 'events', events })
    }, BATCH_MS)
  }

  #say(connection: Connection): void {
    this.#around.tell({ type: 'connection', connection })
  }
}

const NOBODY = '00000000-0000-7000-8000-000000000000'

const fixOf = ({ recordedAt, lastSeenAt, status: _, ...rest }: LivePosition): Fix => ({
  ...rest,
  at: Date.parse(recordedAt),
  seenAt: Date.parse(lastSeenAt),
})
