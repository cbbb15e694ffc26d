import {
  locationStream,
  type LocationEntry,
  type PointBatch,
  type TrackerDeleted,
} from '../features/locations/events.ts'
import { transitionStream, type Decided } from '../features/transitions/events.ts'
import type { TrackerFacts } from '../features/trackers/views.ts'
import type { PartitionConsumer } from '../kit/consumers/partition-consumer.ts'
import { TurnShare } from '../kernel/turn-share.ts'
import type { Wrote } from '../kit/http/route.ts'
import { ALL_SEEN, encodeCursor, FEEDS, partOf, REMEMBERED_FEED, type Reach } from './cursor.ts'
import type { ChannelName, LiveEvent } from './live-event.ts'
import type { FeedHub } from './feed.ts'
import { forEachRun } from './apply-entry.ts'
import type { HubOptions } from './options.ts'
import { LiveOrganization } from './organization.ts'
import { loadOrganization } from './load-organization.ts'
import type { Subscription, Viewer } from './subscription.ts'

/** Interval of looks at changes while there are any. A client's own interval is a multiple of it at best. */
const TICK_MS = 10
/** Time that one tick takes for clients, ms. */
const TURN = { least: 5, most: 50, times: 0.5 }
/** Time after which an organization without viewers is forgotten. */
const IDLE_MS = 5 * 60_000

/** Keeps the last positions of every organization that has viewers, and sends clients the changes, at their pace. */
export class LiveHub implements FeedHub {
  readonly options: HubOptions
  /** Events of each partition's transitions that this process has seen, and after them of each feed. */
  readonly vector: Reach[]
  clientCount = 0
  /** The newest known writes of trackers and their users. */
  trackersWrote: Wrote | undefined
  /** Revision of the last handled entry of each location stream. */
  private readonly handled: number[]
  /** Streams that it follows: loaded again after a failure, it goes on where it was, since viewers have had all before. */
  private readonly followed = new Set<string>()
  private readonly organizations = new Map<string, LiveOrganization>()
  private readonly owing = new Map<Subscription, Viewer>()
  private readonly owners = new Map<Subscription, Viewer>()
  /** Cancels the tick that is due; undefined: none is. */
  private cancelTick: (() => void) | undefined
  private readonly share = new TurnShare(TURN)
  private isForgetting = false
  private cursorText: string | undefined

  constructor(options: HubOptions) {
    this.options = options
    this.vector = Array.from({ length: options.partitions + FEEDS.length }, () => ({ revision: -1, seen: 0 }))
    this.handled = Array.from({ length: options.partitions }, () => -1)
  }

  /** Consumer of the location streams. */
  readonly positions: PartitionConsumer<LocationEntry> = {
    name: 'live',
    load: async (partition) => {
      const stream = locationStream(partition)
      if (!this.followed.has(stream)) this.handled[partition] = await this.options.log.head(stream)
      this.followed.add(stream)
      return this.handled[partition]
    },
    handle: (entry) => this.onLocations(entry),
    skipped: () => this.startAnew(),
  }

  /** Consumer of the transition streams. */
  readonly events: PartitionConsumer<{ revision: number; decided?: Decided }> = {
    name: 'live-events',
    load: async (partition) => {
      const stream = transitionStream(partition)
      if (!this.followed.has(stream))
        this.vector[partition] = { revision: await this.options.log.head(stream), seen: ALL_SEEN }
      this.followed.add(stream)
      return this.vector[partition].revision
    },
    handle: ({ revision, decided }, partition) => {
      const waiting = decided && this.factsOf(decided)
      if (waiting === undefined) return this.onDecided(partition, revision, decided)
      return waiting.then(() => this.onDecided(partition, revision, decided))
    },
    skipped: () => this.startAnew(),
  }

  get cursor(): string {
    this.cursorText ??= encodeCursor(this.options.logMark, this.vector)
    return this.cursorText
  }

  /** The live view of an organization, loaded if it had no viewers before. */
  organization(organizationId: string): LiveOrganization {
    const known = this.organizations.get(organizationId)
    if (known !== undefined) return known
    const organization = new LiveOrganization(
      this.options,
      this.vector.slice(0, partOf(REMEMBERED_FEED, this.options.partitions) + 1),
    )
    this.organizations.set(organizationId, organization)
    organization.loaded = loadOrganization(
      this.options,
      organizationId,
      organization,
      [...this.handled],
      this.trackersWrote,
    )
    organization.loaded.catch(
      () => this.organizations.get(organizationId) === organization && this.organizations.delete(organizationId),
    )
    organization.idleSince = this.options.clock.monotonic()
    this.forgetLater()
    return organization
  }

  subscribe(client: Viewer, organization: LiveOrganization, subscription: Subscription): void {
    organization.add(subscription)
    this.owners.set(subscription, client)
  }

  unsubscribe(organization: LiveOrganization, subscription: Subscription): void {
    subscription.end()
    organization.remove(subscription, this.options.clock.monotonic())
    this.owners.delete(subscription)
    this.owing.delete(subscription)
    this.forgetLater()
  }

  /** A tracker was made, renamed, or moved to another hub. */
  trackerChanged(organizationId: string, trackerId: string, facts: TrackerFacts): void {
    this.organizations.get(organizationId)?.know(trackerId, facts)
    this.tickSoon()
  }

  trackerGone(organizationId: string, trackerId: string): void {
    this.organizations.get(organizationId)?.trackerGone(trackerId)
    this.tickSoon()
  }

  /** Looks at a subscription at the next tick; at one that awaits its answer in this turn of the event loop. */
  owe(subscription: Subscription): void {
    const client = this.owners.get(subscription)
    if (client === undefined) return
    this.owing.set(subscription, client)
    if (subscription.isAnswered) this.tickSoon()
    else this.tickNow()
  }

  /** What this process holds may lack something: whoever comes back is shown what the tables have. */
  startAnew(): void {
    this.organizations.clear()
    for (const viewer of new Set(this.owners.values())) viewer.restart()
  }

  private onLocations(entry: LocationEntry): void {
    this.handled[entry.partition] = entry.revision
    if (this.organizations.size === 0) return
    if (entry.kind === 'points') this.onPoints(entry.batch)
    if (entry.kind === 'trackerDeleted') this.onDeletion(entry.deletion)
  }

  private onDeletion({ organizationId, trackerId }: TrackerDeleted): void {
    const organization = this.organizations.get(organizationId)
    if (organization === undefined) return
    organization.forget(trackerId)
    if (!organization.isLoaded) organization.deletedWhileLoading.add(trackerId)
    this.tickSoon()
  }

  private onPoints(batch: PointBatch): void {
    let took = false
    forEachRun(batch, (organizationId, from, to) => {
      const organization = this.organizations.get(organizationId)
      if (organization === undefined) return
      organization.fleet.take(batch, from, to)
      took = true
    })
    if (took) this.tickSoon()
  }

  /** Resolves when the viewers of the trackers are known; undefined where there is nothing to wait for. */
  private factsOf({ decisions }: Decided): Promise<unknown> | undefined {
    if (this.organizations.size === 0) return undefined
    const waiting = decisions.flatMap(
      ({ organizationId, trackerId }) => this.organizations.get(organizationId)?.factsOf(trackerId) ?? [],
    )
    return waiting.length === 0 ? undefined : Promise.all(waiting)
  }

  private onDecided(partition: number, revision: number, decided: Decided | undefined): void {
    decided?.decisions.forEach((decision, index) => {
      const reach = { revision, seen: index + 1 }
      this.seen(partition, reach)
      if (this.isWatched(decision.organizationId))
        this.tell(decision.organizationId, this.eventOf(decision, partition, reach))
    })
    this.seen(partition, { revision, seen: ALL_SEEN })
  }

  readonly eventOf = (decision: Decided['decisions'][number], partition: number, reach: Reach): LiveEvent => {
    const channel = decision.kind === 'transition' ? 'geofence' : 'trip'
    let text: string | undefined
    const textOf = (): string => (text ??= JSON.stringify(this.options.sources.eventOf(decision)))
    return { channel, trackerId: decision.trackerId, partition, reach, text: textOf }
  }

  isWatched(organizationId: string): boolean {
    return this.organizations.has(organizationId)
  }

  /** Whether anybody of the organization, or of any, subscribes to the channel. */
  asksFor(channel: ChannelName, organizationId?: string): boolean {
    if (organizationId !== undefined) return this.organizations.get(organizationId)?.asksFor(channel) ?? false
    for (const organization of this.organizations.values()) if (organization.asksFor(channel)) return true
    return false
  }

  /** Offers an event to the organization's viewers, and keeps it for clients that come back. */
  tell(organizationId: string, event: LiveEvent): void {
    this.organizations.get(organizationId)?.ring.push(event)
    this.offer(organizationId, event)
  }

  /** Offers an event to the organization's viewers. */
  offer(organizationId: string, event: LiveEvent): void {
    const organization = this.organizations.get(organizationId)
    if (organization === undefined) return
    for (const subscription of organization.audienceOf(event))
      this.owners.get(subscription)?.offerEvent(subscription, event)
  }

  seen(partition: number, reach: Reach): void {
    this.vector[partition] = reach
    this.cursorText = undefined
  }

  private tickSoon(): void {
    this.cancelTick ??= this.options.clock.after(TICK_MS, () => this.tick())
  }

  private tickNow(): void {
    this.cancelTick?.()
    const turn = setImmediate(() => this.tick())
    this.cancelTick = () => clearImmediate(turn)
  }

  /** Informs the organization's subscriptions of changed units. */
  spread(organization: LiveOrganization): void {
    const owing = new Set<Subscription>()
    const conflated = organization.spread(owing)
    for (const subscription of owing) this.owing.set(subscription, this.owners.get(subscription) as Viewer)
    if (conflated > 0) this.options.onConflated(conflated)
  }

  private tick(): void {
    this.cancelTick = undefined
    const now = this.options.clock.now()
    const elapsedMs = this.options.clock.monotonic()
    const later: [Subscription, Viewer][] = []
    for (const organization of this.organizations.values())
      if (organization.subscriptions.size > 0) this.spread(organization)
    const end = this.share.begin(performance.now())
    let isOver = false
    for (const [subscription, client] of this.owing) {
      if (isOver) break
      this.owing.delete(subscription)
      const next = client.settle(subscription, now, elapsedMs)
      // Last of all, in this tick if there is time.
      if (next === 'now') this.owing.set(subscription, client)
      else if (next === 'later') later.push([subscription, client])
      isOver = performance.now() > end
    }
    for (const [subscription, client] of later) this.owing.set(subscription, client)
    if (this.owing.size === 0) return
    // Due clients wait for a turn of the event loop, not for a whole tick.
    if (!isOver) return this.tickSoon()
    this.share.ask(performance.now())
    this.tickNow()
  }

  private forgetLater(): void {
    if (this.isForgetting) return
    this.isForgetting = true
    this.options.clock.after(IDLE_MS, () => this.forgetIdle())
  }

  private forgetIdle(): void {
    this.isForgetting = false
    const now = this.options.clock.monotonic()
    for (const [id, { idleSince }] of this.organizations)
      if (idleSince !== undefined && now - idleSince >= IDLE_MS) this.organizations.delete(id)
    if ([...this.organizations.values()].some(({ idleSince }) => idleSince !== undefined)) this.forgetLater()
  }
}
