// The page's fleet: filled by the live worker, aged by the server's clock, filtered for list and map alike.
import { get, getAll, type Json, orNothing, serverNow } from '../api/client.ts'
import { pageSettings } from '../app/page-settings.ts'
import { session } from '../app/session.svelte.ts'
import type { Fence } from '../map/fence-features.ts'
import type { Position } from '../map/geometry.ts'
import { byName } from '../parts/by-name.ts'
import { EventFeed } from './event-feed.svelte.ts'
import type { Met } from './columns.ts'
import { Fleet, STATES } from './fleet.ts'
import type { Connection, FromWorker, LiveEvent, ToWorker } from './messages.ts'

const LIVE_PATH = '/api/v3/live'
const SHOW_MS = 200
const AGE_MS = 1000
const FENCES_MAX = 20_000
/** Larger fleets are updated once a second. */
const QUICK_FLEET_MAX = 2_000
const QUICK_MS = 250
/** Longest wait for how large the fleet is. */
const SIZE_MS = 4_000
const NO_SIZE = { total: 0 }
const SLOW_MS = 1000
/** Interval of loading data that the live channel does not send. */
const REFRESH_MS = 5 * 60_000
/** Pause after loading that failed; each is twice as long as the last. */
const AGAIN_MS = 2_000
/** Delays of looking up an unknown geofence: the list may briefly lack one that was just created. */
const SEEK_MS = [0, 2_000, 15_000]
/** A second that took longer than this was a sleep, or a hidden tab. */
const SLEPT_MS = 15_000
/** Span in which the first view looks for movement. */
const STEPS_MS = 2 * 60_000
const STEPS_MAX = 20_000

export interface TrackerFacts {
  hubId?: string
  teamId?: string
  tags: readonly string[]
}

const FACTS = '_id,hubId,teamId,tags'
const FACTS_AT_ONCE = 500
const TRACKERS_MAX = 200_000
const NO_FACTS: TrackerFacts = { tags: [] }

class LiveStore {
  readonly fleet = new Fleet()
  readonly feed = new EventFeed()
  /** Increases whenever something needs to be redrawn. */
  tick = $state(0)
  /** Changes every second: ages are computed from it. */
  now = $state(serverNow())
  /** The notification last announced or read, as received. */
  notified = $state.raw<Json>()
  connection = $state<Connection>('connecting')
  lostAt = $state(0)
  isLoaded = $state(false)
  counts = $state.raw<number[]>(STATES.map(() => 0))
  fences = $state.raw<Fence[]>([])
  /** Until then an empty list says nothing. */
  areFencesKnown = $state(false)
  hubs = $state.raw<Json[]>([])
  teams = $state.raw<Json[]>([])
  tags = $state.raw<string[]>([])
  facts = new Map<string, TrackerFacts>()
  #knowsFacts = false
  #worker: Worker | undefined
  #aging = 0
  #isDue = false
  #agedAt = 0
  #tickedAt = 0
  #refreshedAt = 0
  #againMs = AGAIN_MS
  #isFeedLoaded = false
  /** Geofences looked up since the last refresh, which may not exist. */
  #sought = new Set<string>()

  async start(): Promise<void> {
    // Without an answer the channel is opened all the same: it tries again by itself.
    const { total } = await Promise.race([
      get('/live-positions?limit=1').catch(() => NO_SIZE),
      new Promise<typeof NO_SIZE>((resume) => setTimeout(resume, SIZE_MS, NO_SIZE)),
    ])
    if (session.state !== 'signed-in') return
    this.#worker = new Worker(LIVE_WORKER)
    this.#worker.onmessage = ({ data }: { data: FromWorker }) => this.#hear(data)
    this.#open(total > QUICK_FLEET_MAX ? SLOW_MS : QUICK_MS)
    this.#tickedAt = Date.now()
    this.#aging = setInterval(() => {
      this.#noticeSleep()
      if (serverNow() - this.#refreshedAt > REFRESH_MS && document.visibilityState === 'visible') this.#refresh()
      if (performance.now() - this.#agedAt > AGE_MS / 2) this.#age()
    }, AGE_MS) as unknown as number
    session.onToken((token) => this.#tell({ type: 'token', token }))
    session.onPermissions(() => {
      this.#tell({ type: 'permissions' })
      void Promise.all([this.loadFences(), this.#loadFacts(), this.feed.load(this.fleet)]).catch(() => undefined)
    })
    addEventListener('online', () => this.#tell({ type: 'retry' }))
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#tell({ type: 'retry' })
    })
    this.#refreshedAt = serverNow()
    await this.#load()
  }

  async #load(): Promise<void> {
    try {
      const feed = this.#isFeedLoaded ? undefined : this.feed.load(this.fleet).then(() => (this.#isFeedLoaded = true))
      await Promise.all([this.loadFences(), this.#loadFacts(), feed])
      this.#againMs = AGAIN_MS
    } catch {
      // Due again after a pause.
      this.#refreshedAt = serverNow() - REFRESH_MS + this.#againMs
      this.#againMs = Math.min(2 * this.#againMs, REFRESH_MS)
    }
  }

  /** Reloads data that others may have changed: geofences, teams, tags, and the reader's permissions. */
  #refresh(): void {
    this.#refreshedAt = serverNow()
    this.#sought.clear()
    void session.lookAround().then(() => this.#load())
  }

  /** Timers stop while the machine sleeps; its clock does not. */
  #noticeSleep(): void {
    const now = Date.now()
    if (now - this.#tickedAt > SLEPT_MS) this.#tell({ type: 'woke' })
    this.#tickedAt = now
  }

  stop(): void {
    clearInterval(this.#aging)
    this.#tell({ type: 'close' })
    this.#worker?.terminate()
    this.#worker = undefined
  }

  async loadFences(): Promise<void> {
    this.#know(session.may('view/geofence') ? await orNothing(getAll('/geofences', FENCES_MAX), []) : [])
  }

  #know(fences: Fence[]): void {
    this.areFencesKnown = true
    this.fences = byName(fences)
    this.feed.fenceNames = new Map(fences.map(({ _id, name }) => [_id, name]))
  }

  /** Id if the tracker no longer exists. */
  nameOf(trackerId: string): string {
    const slot = this.fleet.slotOf(trackerId)
    return slot === undefined ? trackerId : this.fleet.names[slot]!
  }

  fenceOf(id: string): Fence | undefined {
    return this.fences.find(({ _id }) => _id === id)
  }

  #open(interval: number): void {
    const channels = ['positions', 'trip', 'notification']
    const url = `${location.origin.replace('http', 'ws')}${LIVE_PATH}`
    this.#tell({ type: 'open', url, token: session.token!, subscription: { channels, interval } })
  }

  #tell(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #hear(message: FromWorker): void {
    if (message.type === 'positions') {
      this.fleet.take(message.columns, performance.now(), message.isSnapshot)
      this.fleet.remove(message.gone)
      void this.#meet(message.columns.met).catch(() => undefined)
      if (message.isSnapshot && !this.isLoaded) void this.#loadSteps().catch(() => undefined)
      // The first ones at once: until then the list is not empty, but not known.
      if (!this.isLoaded) this.#age()
      this.isLoaded = true
      this.#showSoon()
    } else if (message.type === 'events') this.#takeEvents(message.events)
    else if (message.type === 'gap') void this.feed.load(this.fleet)
    else if (message.type === 'refused') void session.lookAround()
    else this.#connected(message.connection)
  }

  #takeEvents(events: LiveEvent[]): void {
    const told = events.filter(({ channel }) => channel === 'notification')
    this.notified = told.at(-1)?.event ?? this.notified
    this.#seekFences(events)
    if (told.length < events.length)
      this.feed.take(
        events.filter((event) => !told.includes(event)),
        this.fleet,
      )
  }

  /** Loads geofences that were just created; gives up soon on ones deleted by now, or beyond a page's limit. */
  #seekFences(events: readonly LiveEvent[]): void {
    const crossed = events.filter(({ channel }) => channel === 'geofence').map(({ event }) => String(event.geofenceId))
    const unknown = crossed.filter((id) => !this.feed.fenceNames.has(id) && !this.#sought.has(id))
    if (unknown.length === 0) return
    for (const id of unknown) this.#sought.add(id)
    void this.#seek(unknown)
  }

  async #seek(ids: readonly string[]): Promise<void> {
    for (const ms of SEEK_MS) {
      await new Promise((resume) => setTimeout(resume, ms))
      const missing = ids.filter((id) => !this.feed.fenceNames.has(id)).slice(0, FACTS_AT_ONCE)
      if (missing.length === 0 || !session.may('view/geofence')) return
      const { data } = await orNothing(get(`/geofences?_id=${missing.join()}`), { data: [] })
      const fresh = data.filter(({ _id }: Json) => !this.feed.fenceNames.has(_id))
      if (fresh.length > 0) this.#know([...this.fences, ...fresh])
    }
  }

  #connected(connection: Connection): void {
    if (connection === 'lost' && this.connection !== 'lost') this.lostAt = serverNow()
    if (connection === 'live' && this.connection !== 'connecting') this.#refresh()
    this.connection = connection
    // The socket's token has ended: the worker gets a new one; without one the page asks for a sign-in.
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
    this.#agedAt = performance.now()
    this.now = serverNow()
    this.counts = [...this.fleet.age(this.now, pageSettings)]
    this.tick++
  }

  /** Loads earlier points for snapshot positions without speed, to decide whether they move. */
  async #loadSteps(): Promise<void> {
    if (!this.fleet.speed.subarray(0, this.fleet.size).some(Number.isNaN)) return
    const from = new Date(serverNow() - STEPS_MS).toISOString()
    const path = `/location-histories?from=${from}&limit=${STEPS_MAX}&fields=trackerId,recordedAt,lat,lng`
    const { data } = await orNothing(get(path), { data: [] })
    this.fleet.takeSteps(
      data
        .map(({ trackerId, recordedAt, lat, lng }: Json) => ({
          trackerId,
          at: Date.parse(recordedAt),
          position: [lng, lat] as Position,
        }))
        .reverse(),
    )
    this.#age()
  }

  /** Loads hub, team and tags of trackers, which positions do not include. */
  async #loadFacts(): Promise<void> {
    const [hubs, teams] = await Promise.all([
      session.may('view/hub') ? orNothing(getAll('/hubs?fields=_id,name', 5_000), []) : [],
      session.may('view/team') ? orNothing(getAll('/teams?fields=_id,name', 5_000), []) : [],
    ])
    this.hubs = byName(hubs as { name: string }[])
    this.teams = byName(teams as { name: string }[])
    this.#learn(await orNothing(getAll(`/trackers?fields=${FACTS}`, TRACKERS_MAX), []))
    this.#knowsFacts = true
  }

  /** Trackers added after the page was opened. */
  async #meet(met: readonly Met[]): Promise<void> {
    const fresh = met.filter(({ trackerId }) => !this.facts.has(trackerId)).slice(0, FACTS_AT_ONCE)
    if (!this.#knowsFacts || fresh.length === 0) return
    for (const { trackerId } of fresh) this.facts.set(trackerId, NO_FACTS)
    const ids = fresh.map(({ trackerId }) => trackerId).join()
    this.#learn((await orNothing(get(`/trackers?_id=${ids}&fields=${FACTS}`), { data: [] })).data)
  }

  #learn(rows: readonly Json[]): void {
    for (const { _id, hubId, teamId, tags = [] } of rows) this.facts.set(_id, { hubId, teamId, tags })
    const tags = new Set([...this.facts.values()].flatMap((facts) => facts.tags))
    this.tags = [...tags].sort()
    this.tick++
  }
}

export const live = new LiveStore()
