// The fleet as the page knows it: filled by the live worker, aged by the server's clock, filtered for list and map alike.
import { get, getAll, type Json, orNothing, serverNow } from '../api/client.ts'
import { pageSettings } from '../app/page-settings.ts'
import { session } from '../app/session.svelte.ts'
import type { Fence } from '../map/fence-features.ts'
import { EventFeed } from './event-feed.svelte.ts'
import { Fleet, STATES } from './fleet.ts'
import type { Connection, FromWorker, LiveEvent, ToWorker } from './messages.ts'

const LIVE_PATH = '/api/v3/live'
const SHOW_MS = 200
const AGE_MS = 1000
const FENCES_MAX = 20_000
/** Above this, what is new comes once a second. */
const QUICK_FLEET_MAX = 2_000
const QUICK_MS = 250
const SLOW_MS = 1000

export interface TrackerFacts {
  hubId?: string
  teamId?: string
}

class LiveStore {
  readonly fleet = new Fleet()
  readonly feed = new EventFeed()
  /** Rises whenever something is to be shown anew. */
  tick = $state(0)
  /** Rises each second: ages are told by it. */
  now = $state(serverNow())
  /** Rises with each notification. */
  notified = $state(0)
  connection = $state<Connection>('connecting')
  lostAt = $state(0)
  isLoaded = $state(false)
  counts = $state.raw<number[]>(STATES.map(() => 0))
  fences = $state.raw<Fence[]>([])
  hubs = $state.raw<Json[]>([])
  teams = $state.raw<Json[]>([])
  facts = new Map<string, TrackerFacts>()
  #worker: Worker | undefined
  #aging = 0
  #isDue = false

  async start(): Promise<void> {
    const { total } = await orNothing(get('/live-positions?limit=1'), { total: 0 })
    if (session.state !== 'signed-in') return
    this.#worker = new Worker(LIVE_WORKER)
    this.#worker.onmessage = ({ data }: { data: FromWorker }) => this.#hear(data)
    this.#open(total > QUICK_FLEET_MAX ? SLOW_MS : QUICK_MS)
    this.#aging = setInterval(() => this.#age(), AGE_MS) as unknown as number
    session.onToken((token) => this.#tell({ type: 'token', token }))
    addEventListener('online', () => this.#tell({ type: 'retry' }))
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#tell({ type: 'retry' })
    })
    await Promise.all([this.loadFences(), this.#loadFacts(), this.feed.load()])
  }

  stop(): void {
    clearInterval(this.#aging)
    this.#tell({ type: 'close' })
    this.#worker?.terminate()
    this.#worker = undefined
  }

  async loadFences(): Promise<void> {
    if (!session.may('view/geofence')) return
    this.fences = await orNothing(getAll('/geofences', FENCES_MAX), [])
    this.feed.fenceNames = new Map(this.fences.map(({ _id, name }) => [_id, name]))
  }

  fenceOf(id: string): Fence | undefined {
    return this.fences.find(({ _id }) => _id === id)
  }

  #open(interval: number): void {
    const channels = ['positions', 'geofence', 'trip', 'notification']
    const url = `${location.origin.replace('http', 'ws')}${LIVE_PATH}`
    this.#tell({ type: 'open', url, token: session.token!, subscription: { channels, interval } })
  }

  #tell(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #hear(message: FromWorker): void {
    if (message.type === 'positions') {
      if (message.isSnapshot) this.fleet.removeAllBut(new Set(message.fixes.map(({ trackerId }) => trackerId)))
      this.fleet.take(message.fixes, performance.now())
      this.fleet.remove(message.gone)
      this.isLoaded = true
      this.#showSoon()
    } else if (message.type === 'events') this.#takeEvents(message.events)
    else if (message.type === 'gap') void this.feed.load()
    else this.#connected(message.connection)
  }

  #takeEvents(events: LiveEvent[]): void {
    const told = events.filter(({ channel }) => channel === 'notification')
    this.notified += told.length
    if (told.length < events.length)
      this.feed.take(
        events.filter((event) => !told.includes(event)),
        this.fleet,
      )
  }

  #connected(connection: Connection): void {
    if (connection === 'lost' && this.connection !== 'lost') this.lostAt = serverNow()
    this.connection = connection
    // The socket's token has ended: a new one is handed to the worker, without one the page asks to sign in.
    if (connection === 'signed-out') {
      this.lostAt = serverNow()
      void session.renew()
    }
  }

  #showSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setTimeout(() => {
      this.#isDue = false
      this.#age()
    }, SHOW_MS)
  }

  #age(): void {
    this.now = serverNow()
    this.counts = [...this.fleet.age(this.now, pageSettings)]
    this.tick++
  }

  /** Which hub and team a tracker belongs to: positions do not say it. */
  async #loadFacts(): Promise<void> {
    const [hubs, teams] = await Promise.all([
      orNothing(getAll('/hubs?fields=_id,name', 5_000), []),
      orNothing(getAll('/teams?fields=_id,name', 5_000), []),
    ])
    if (hubs.length > 1 || teams.length > 0) {
      const rows = await orNothing(getAll('/trackers?fields=_id,hubId,teamId', 200_000), [])
      for (const { _id, hubId, teamId } of rows) this.facts.set(_id, { hubId, teamId })
    }
    this.hubs = hubs
    this.teams = teams
  }
}

export const live = new LiveStore()
