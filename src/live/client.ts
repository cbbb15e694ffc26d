import { BoundedQueue } from '../kernel/bounded-queue.ts'
import { breathe } from '../kernel/breath.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { ErrorCode } from '../kernel/errors.ts'
import { TokenBucket } from '../kernel/token-bucket.ts'
import { CLOSE, type Channel, type ChannelConnection, type ChannelSocket } from '../kit/http/channel.ts'
import { refusalOf, taskSight } from './channel-permissions.ts'
import { furthest } from './cursor.ts'
import type { LiveEvent } from './live-event.ts'
import type { LiveHub } from './hub.ts'
import { readMessage, type SubscribeMessage, wantedOf } from './messages.ts'
import type { LiveOrganization } from './organization.ts'
import { Outbox } from './outbox.ts'
import { endsOfBegun, missedEvents, seenBy } from './resume.ts'
import { type HeldEvent, Subscription, type Viewer } from './subscription.ts'

export const SUBSCRIPTIONS_MAX = 16
/** Messages of one connection, on average and at once: panning a map sends some ten a second. */
export const MESSAGES_PER_SECOND = 100
export const MESSAGES_AT_ONCE = 1_000
/** Subscribes among them: each costs a snapshot, and reads the log if it has `since`. */
export const SUBSCRIBES_PER_SECOND = 30
export const SUBSCRIBES_AT_ONCE = 300
/** Events that may wait while older ones are sent. */
const HELD_MAX = 10_000

/** The channel /live: positions and events, at each client's pace. */
export const liveChannel = (hub: LiveHub, inRollout: (caller: UserCaller) => boolean): Channel => ({
  path: '/live',
  accepts: ['user', 'service'],
  open: (socket, caller) => new LiveClient(hub, socket, caller as UserCaller, inRollout),
})

/** One dashboard: its subscriptions, and the messages for it. */
class LiveClient implements ChannelConnection, Viewer {
  private readonly hub: LiveHub
  private readonly socket: ChannelSocket
  private readonly outbox: Outbox
  private readonly messages: TokenBucket
  private readonly subscribes: TokenBucket
  /** The organization of its subscriptions; without any the hub may forget it. */
  private organization: LiveOrganization
  private readonly subscriptions = new Map<string, Subscription>()
  private readonly inRollout: (caller: UserCaller) => boolean
  private caller: UserCaller
  private open = true

  constructor(hub: LiveHub, socket: ChannelSocket, caller: UserCaller, inRollout: (caller: UserCaller) => boolean) {
    this.hub = hub
    this.socket = socket
    this.outbox = new Outbox(socket)
    const now = hub.options.clock.monotonic()
    this.messages = new TokenBucket(MESSAGES_PER_SECOND, now, MESSAGES_AT_ONCE)
    this.subscribes = new TokenBucket(SUBSCRIBES_PER_SECOND, now, SUBSCRIBES_AT_ONCE)
    this.caller = caller
    this.inRollout = inRollout
    this.organization = hub.organization(caller.organizationId)
    hub.clientCount++
  }

  message(data: ArrayBuffer, isBinary: boolean): void {
    if (!this.open) return
    const now = this.hub.options.clock.monotonic()
    if (!this.messages.take(1, now))
      return this.close(CLOSE.tooFast, `at most ${MESSAGES_PER_SECOND} messages a second`)
    const read = readMessage(data, isBinary)
    if (read.kind === 'unreadable') this.close(CLOSE.badMessage, read.reason)
    else if (read.kind === 'invalid') this.error(read.id, 'invalid', read.message)
    else if (read.kind === 'unsubscribe') this.drop(read.id)
    else if (this.subscribes.take(1, now)) this.subscribe(read.message)
    else this.close(CLOSE.tooFast, `at most ${SUBSCRIBES_PER_SECOND} subscribes a second`)
  }

  drain(): void {
    this.outbox.drain()
    for (const subscription of this.subscriptions.values()) this.hub.owe(subscription)
  }

  reauthorized(caller: UserCaller): void {
    const seesOtherTasks = taskSight(caller) !== taskSight(this.caller)
    this.caller = caller
    for (const subscription of this.subscriptions.values()) {
      subscription.caller = caller
      this.organization.rightsChanged(subscription)
      const { channels } = subscription.wanted
      if (refusalOf(channels, caller) !== undefined)
        this.fail(subscription, 'forbidden', 'Your role no longer allows this subscription.')
      else {
        if (seesOtherTasks && channels.has('task')) this.beginAnew(subscription)
        this.reconsider(subscription)
      }
    }
  }

  closed(): void {
    this.open = false
    this.hub.clientCount--
    this.outbox.close()
    for (const subscription of [...this.subscriptions.values()]) this.remove(subscription)
  }

  /** An event of the organization; sent when it is for the subscription. */
  offerEvent(subscription: Subscription, event: LiveEvent): void {
    if (subscription.hasSeen(event) || !this.wants(subscription, event)) return
    const cursor = this.cursorOf(subscription)
    if (subscription.held === undefined) this.sendEvent(subscription, event, cursor)
    else if (!subscription.held.push({ event, cursor })) this.tooSlow()
  }

  restart(): void {
    this.close(CLOSE.restart, 'this process may have missed something; come back with since')
  }

  settle(subscription: Subscription, now: number, elapsedMs: number): 'now' | 'later' | 'done' {
    if (!this.open || subscription.held !== undefined) return 'done' // asked again when the events are through
    if (this.outbox.congested) return 'done' // asked again by drain
    if (subscription.snapshot !== undefined) {
      this.sendSnapshotPart(subscription, now, elapsedMs)
      return 'now'
    }
    if (!subscription.owes) return 'done'
    if (elapsedMs - subscription.sentAtMs < subscription.wanted.intervalMs) return 'later'
    const { positions, gone } = this.organization.payload(subscription, now)
    if (positions.length === 0 && gone.length === 0) return 'done'
    subscription.sentAtMs = elapsedMs
    const { idText } = subscription
    const rest = gone.length > 0 ? `,"gone":${JSON.stringify(gone)}}` : '}'
    this.send(
      `{"type":"positions","id":${idText},"cursor":"${this.cursorOf(subscription)}","positions":[${positions.join()}]${rest}`,
    )
    return 'done'
  }

  private subscribe(message: SubscribeMessage): void {
    const refusal = refusalOf(message.channels, this.caller)
    if (refusal !== undefined) return this.error(message.id, 'forbidden', refusal)
    if (this.subscriptions.size >= SUBSCRIPTIONS_MAX && !this.subscriptions.has(message.id)) {
      const sentence = `A connection has at most ${SUBSCRIPTIONS_MAX} subscriptions; unsubscribe one first.`
      return this.error(message.id, 'rate_limited', sentence)
    }
    this.start(message)
  }

  private start({ since, ...message }: SubscribeMessage): void {
    this.drop(message.id)
    if (this.subscriptions.size === 0) this.organization = this.hub.organization(this.caller.organizationId)
    const subscription = new Subscription(wantedOf(message), this.caller, since ?? this.hub.cursor)
    this.subscriptions.set(message.id, subscription)
    this.hub.subscribe(this, this.organization, subscription)
    if (since === undefined && this.organization.isLoaded) return this.begin(subscription)
    subscription.held = new BoundedQueue<HeldEvent>(HELD_MAX)
    this.beginLater(subscription, since).catch((error: unknown) => {
      this.hub.options.logger.error('live subscription failed', { error: String(error) })
      if (this.has(subscription))
        this.fail(subscription, 'engine_down', 'The positions cannot be read now; subscribe again later.')
    })
  }

  /** First the events after `since`, or a notice of a gap, then the snapshot. */
  private async beginLater(subscription: Subscription, since: string | undefined): Promise<void> {
    await this.organization.loaded
    if (since !== undefined && this.has(subscription)) await this.resume(subscription, since)
    if (!this.has(subscription)) return
    subscription.held = undefined
    this.begin(subscription)
  }

  private begin(subscription: Subscription): void {
    this.hub.spread(this.organization)
    this.organization.forgive(subscription) // the snapshot has it all
    this.organization.beginSnapshot(subscription)
    this.hub.owe(subscription)
  }

  /** Missed and concurrent events, no faster than the client reads. */
  private async resume(subscription: Subscription, since: string): Promise<void> {
    const question = {
      organizationId: this.caller.organizationId,
      ring: this.organization.ring,
      seen: await seenBy(this.hub, since),
      channels: subscription.wanted.channels,
      signal: subscription.signal,
    }
    const ends = await endsOfBegun(this.hub, question)
    const held = new BoundedQueue<HeldEvent>(HELD_MAX)
    subscription.held = held // events held so far lie before the present vector, so they are among the missed
    const to = furthest(this.hub.vector, ends)
    subscription.seen = question.seen && furthest(question.seen, to)
    for await (const one of missedEvents(this.hub, question, to)) {
      if (!this.has(subscription)) return
      if (one === undefined) this.send(`{"type":"gap","id":${subscription.idText}}`)
      else if (this.wants(subscription, one.event)) await this.sendInTurn(subscription, one)
    }
    for (let one = held.shift(); one !== undefined && this.has(subscription); one = held.shift())
      await this.sendInTurn(subscription, one)
  }

  private async sendInTurn(subscription: Subscription, { event, cursor }: HeldEvent): Promise<void> {
    await breathe()
    if (this.outbox.congested) await this.outbox.room(subscription.signal)
    if (this.has(subscription)) this.sendEvent(subscription, event, cursor)
  }

  private cursorOf(subscription: Subscription): string {
    return subscription.cursorAt(this.hub.options.logMark, this.hub.vector, this.hub.cursor)
  }

  private has(subscription: Subscription): boolean {
    return this.subscriptions.get(subscription.wanted.id) === subscription
  }

  private sendSnapshotPart(subscription: Subscription, now: number, elapsedMs: number): void {
    const positions = this.organization.nextOfSnapshot(subscription, now)
    const isMore = subscription.snapshot !== undefined
    if (isMore && positions.length === 0) return
    this.sendSnapshot(subscription, positions, this.cursorOf(subscription), isMore)
    subscription.sentAtMs = elapsedMs
  }

  private sendSnapshot(subscription: Subscription, positions: string[], cursor: string, isMore: boolean): void {
    subscription.isAnswered = !isMore
    this.send(
      `{"type":"snapshot","id":${subscription.idText},"positions":[${positions.join()}],"cursor":"${cursor}"${isMore ? ',"more":true' : ''}}`,
    )
  }

  private wants(subscription: Subscription, event: LiveEvent): boolean {
    // Of jobs only back-tests are: callers that may not read them may request the channel and get the others.
    const isOfGeofences = event.channel === 'geofence' || event.isOfGeofences === true
    if (isOfGeofences && !(this.inRollout(this.caller) && this.caller.permissions.has('view/geofence'))) return false
    return this.organization.sees(subscription, event)
  }

  private sendEvent(subscription: Subscription, event: LiveEvent, cursor: string): void {
    this.send(
      `{"type":"event","id":${subscription.idText},"channel":"${event.channel}","cursor":"${cursor}","event":${event.text(subscription)}}`,
    )
  }

  /** Tasks came into sight, or left it, without an event of theirs: the client has to read them again. */
  private beginAnew(subscription: Subscription): void {
    this.send(`{"type":"gap","id":${subscription.idText}}`)
    if (subscription.held === undefined) this.begin(subscription)
  }

  /** Rights changed: units now out of sight go, units now in sight come, unless with the snapshot. */
  private reconsider(subscription: Subscription): void {
    if (!subscription.wanted.channels.has('positions')) return
    for (let slot = 0; slot < this.organization.fleet.size; slot++) {
      const isShown = subscription.shown.has(slot)
      const isChanged = isShown !== this.organization.inSight(subscription, slot)
      if (isChanged && (isShown || subscription.snapshot === undefined)) this.organization.owe(subscription, slot)
    }
    this.hub.owe(subscription)
  }

  /** Ends a subscription. An unanswered one gets an end to its snapshot, so that each subscribe is answered. */
  private drop(id: string): void {
    const subscription = this.subscriptions.get(id)
    if (subscription === undefined) return
    this.remove(subscription)
    if (!subscription.isAnswered) this.sendSnapshot(subscription, [], subscription.cursor, false)
  }

  private fail(subscription: Subscription, code: ErrorCode, message: string): void {
    this.remove(subscription)
    this.error(subscription.wanted.id, code, message)
  }

  private remove(subscription: Subscription): void {
    this.subscriptions.delete(subscription.wanted.id)
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
    this.close(CLOSE.tooFast, 'you read more slowly than events happen; come back with since')
  }

  private close(code: number, reason: string): void {
    this.socket.close(code, reason)
  }
}
