import { BoundedQueue } from '../kernel/bounded-queue.ts'
import { breathe } from '../kernel/breath.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import { CLOSE, type ChannelConnection, type ChannelSocket } from '../kit/http/channel.ts'
import type { LiveEvent } from './event-ring.ts'
import type { LiveHub } from './hub.ts'
import { readMessage, wantedOf, type SubscribeMessage } from './messages.ts'
import type { LiveOrganization } from './organization.ts'
import { missedEvents } from './missed-events.ts'
import { Outbox } from './outbox.ts'
import { refusalOf } from './permissions.ts'
import { type HeldEvent, Subscription, type Viewer } from './subscription.ts'

const SUBSCRIPTIONS_MAX = 16
/** Positions of one message of a snapshot. */
const SNAPSHOT_PART = 1_000
/** Slots that one turn of a snapshot looks at, so that none takes long. */
const SNAPSHOT_SLOTS = 5_000
/** Events that may wait while older ones are sent. */
const HELD_MAX = 10_000

/** One dashboard: its subscriptions, and what goes to it. */
export class LiveClient implements ChannelConnection, Viewer {
  private readonly hub: LiveHub
  private readonly socket: ChannelSocket
  private readonly outbox: Outbox
  /** The one that its subscriptions belong to; without any it may be forgotten by the hub. */
  private organization: LiveOrganization
  private readonly subscriptions = new Map<string, Subscription>()
  private readonly inRollout: (caller: UserCaller) => boolean
  private caller: UserCaller
  private open = true

  constructor(hub: LiveHub, socket: ChannelSocket, caller: UserCaller, inRollout: (caller: UserCaller) => boolean) {
    this.hub = hub
    this.socket = socket
    this.outbox = new Outbox(socket)
    this.caller = caller
    this.inRollout = inRollout
    this.organization = hub.organization(caller.organizationId)
    hub.clientCount++
  }

  message(data: ArrayBuffer, isBinary: boolean): void {
    const read = readMessage(data, isBinary)
    if (read.kind === 'unreadable') this.socket.close(CLOSE.badMessage, read.reason)
    else if (read.kind === 'invalid') this.error(read.id, 'invalid', read.message)
    else if (read.kind === 'unsubscribe') this.drop(read.id)
    else this.subscribe(read.message)
  }

  drain(): void {
    this.outbox.drain()
    for (const subscription of this.subscriptions.values()) this.hub.owe(subscription)
  }

  reauthorized(caller: UserCaller): void {
    this.caller = caller
    for (const subscription of this.subscriptions.values()) {
      subscription.caller = caller
      if (refusalOf(subscription.wanted.channels, caller) !== undefined) {
        this.drop(subscription.wanted.id)
        this.error(subscription.wanted.id, 'forbidden', 'Your role no longer allows this subscription.')
      } else this.reconsider(subscription)
    }
  }

  closed(): void {
    this.open = false
    this.hub.clientCount--
    this.outbox.close()
    for (const id of [...this.subscriptions.keys()]) this.drop(id)
  }

  /** An event of the organization; sent when it is for the subscription. */
  offerEvent(subscription: Subscription, event: LiveEvent): void {
    if (!this.wants(subscription, event)) return
    const cursor = this.hub.cursor
    if (subscription.held === undefined) this.sendEvent(subscription, event, cursor)
    else if (!subscription.held.push({ event, cursor })) this.tooSlow()
  }

  /** Sends what is due of the subscription; answers whether nothing is owed any more. */
  settle(subscription: Subscription, now: number, elapsedMs: number): boolean {
    if (!this.open || subscription.held !== undefined) return true // asked again when the events are through
    if (this.outbox.congested) return true // asked again by drain
    if (subscription.snapshotAt !== undefined) {
      this.sendSnapshotPart(subscription, now, elapsedMs)
      return false
    }
    if (!subscription.owes) return true
    if (elapsedMs - subscription.sentAtMs < subscription.wanted.intervalMs) return false
    const { positions, gone } = this.organization.payload(subscription, now)
    if (positions.length === 0 && gone.length === 0) return true
    subscription.sentAtMs = elapsedMs
    const parts = [
      `{"type":"positions","id":${JSON.stringify(subscription.wanted.id)},"cursor":"${this.hub.cursor}","positions":[${positions.join()}]`,
    ]
    if (gone.length > 0) parts.push(`,"gone":${JSON.stringify(gone)}`)
    this.send(`${parts.join('')}}`)
    return true
  }

  private subscribe(message: SubscribeMessage): void {
    const refusal = refusalOf(message.channels, this.caller)
    const full = !this.subscriptions.has(message.id) && this.subscriptions.size >= SUBSCRIPTIONS_MAX
    if (refusal !== undefined) this.error(message.id, 'forbidden', refusal)
    else if (full)
      this.error(
        message.id,
        'rate_limited',
        `A connection has at most ${SUBSCRIPTIONS_MAX} subscriptions; unsubscribe one first.`,
      )
    else this.start(message)
  }

  private start(message: SubscribeMessage): void {
    this.drop(message.id)
    if (this.subscriptions.size === 0) this.organization = this.hub.organization(this.caller.organizationId)
    const subscription = new Subscription(wantedOf(message), this.caller)
    this.subscriptions.set(message.id, subscription)
    subscription.held = new BoundedQueue<HeldEvent>(HELD_MAX)
    this.hub.subscribe(this, this.organization, subscription)
    this.begin(subscription, message.since).catch((error: unknown) => {
      this.hub.options.logger.error('live subscription failed', { error: String(error) })
      if (!this.has(subscription)) return
      this.drop(message.id)
      this.error(message.id, 'engine_down', 'The positions cannot be read now; subscribe again later.')
    })
  }

  /** First the events after `since`, or a word that there is a gap, then the snapshot. */
  private async begin(subscription: Subscription, since: string | undefined): Promise<void> {
    await this.organization.loaded
    if (since !== undefined && this.has(subscription)) await this.resume(subscription, since)
    if (!this.has(subscription)) return
    subscription.held = undefined
    this.hub.spread(this.organization)
    subscription.takeDirty() // the snapshot has it all
    subscription.snapshotAt = subscription.wanted.channels.has('positions') ? 0 : this.organization.fleet.size
    this.hub.owe(subscription)
  }

  /** What was missed and what comes meanwhile, no faster than the client reads. */
  private async resume(subscription: Subscription, since: string): Promise<void> {
    const held = new BoundedQueue<HeldEvent>(HELD_MAX)
    subscription.held = held // what was held so far lies before the vector of now, so it is among the missed
    const withAutomations = subscription.wanted.channels.has('automation')
    const question = {
      organizationId: this.caller.organizationId,
      ring: this.organization.ring,
      since,
      withAutomations,
      signal: subscription.end.signal,
    }
    for await (const one of missedEvents(this.hub, question, [...this.hub.vector])) {
      if (!this.has(subscription)) return
      if (one === undefined) this.send(`{"type":"gap","id":${JSON.stringify(subscription.wanted.id)}}`)
      else if (this.wants(subscription, one.event)) await this.sendInTurn(subscription, one)
    }
    for (let one = held.shift(); one !== undefined && this.has(subscription); one = held.shift())
      await this.sendInTurn(subscription, one)
    subscription.held = undefined
  }

  private async sendInTurn(subscription: Subscription, { event, cursor }: HeldEvent): Promise<void> {
    await breathe()
    if (this.outbox.congested) await this.outbox.room(subscription.end.signal)
    if (this.has(subscription)) this.sendEvent(subscription, event, cursor)
  }

  private has(subscription: Subscription): boolean {
    return this.subscriptions.get(subscription.wanted.id) === subscription
  }

  private sendSnapshotPart(subscription: Subscription, now: number, elapsedMs: number): void {
    const { fleet } = this.organization
    const positions: string[] = []
    let slot = subscription.snapshotAt as number
    const end = Math.min(fleet.size, slot + SNAPSHOT_SLOTS)
    for (; slot < end && positions.length < SNAPSHOT_PART; slot++) {
      if (!this.organization.inSight(subscription, slot)) continue
      subscription.shown.add(slot)
      positions.push(fleet.text(slot, now))
    }
    const more = slot < fleet.size
    subscription.snapshotAt = more ? slot : undefined
    if (more && positions.length === 0) return
    this.send(
      `{"type":"snapshot","id":${JSON.stringify(subscription.wanted.id)},"positions":[${positions.join()}],"cursor":"${this.hub.cursor}"${more ? ',"more":true' : ''}}`,
    )
    subscription.sentAtMs = elapsedMs
  }

  private wants(subscription: Subscription, event: LiveEvent): boolean {
    // The only jobs are back-tests: whoever may not read them may ask for the channel and hears nothing.
    const isOfGeofences = event.channel === 'geofence' || event.channel === 'job'
    if (isOfGeofences && !(this.inRollout(this.caller) && this.caller.permissions.has('view/geofence'))) return false
    return this.organization.sees(subscription, event)
  }

  private sendEvent(subscription: Subscription, event: LiveEvent, cursor: string): void {
    this.send(
      `{"type":"event","id":${JSON.stringify(subscription.wanted.id)},"channel":"${event.channel}","cursor":"${cursor}","event":${event.text()}}`,
    )
  }

  /** Rights changed: what is out of sight now goes, what came into sight comes. */
  private reconsider(subscription: Subscription): void {
    if (!subscription.wanted.channels.has('positions')) return
    for (let slot = 0; slot < this.organization.fleet.size; slot++) {
      if (subscription.shown.has(slot) !== this.organization.inSight(subscription, slot)) subscription.mark(slot)
    }
    this.hub.owe(subscription)
  }

  private drop(id: string): void {
    const subscription = this.subscriptions.get(id)
    if (subscription === undefined) return
    this.subscriptions.delete(id)
    this.hub.unsubscribe(this.organization, subscription)
    this.outbox.wake()
  }

  private error(id: string | undefined, code: ErrorCode, message: string): void {
    this.send(JSON.stringify({ type: 'error', id, code, message }))
  }

  private send(text: string): void {
    if (this.open && !this.outbox.send(text)) this.tooSlow()
  }

  private tooSlow(): void {
    this.socket.close(CLOSE.tooFast, 'you read more slowly than events happen; come back with since')
  }
}
