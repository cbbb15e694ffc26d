import type { UserCaller } from '../kernel/caller.ts'
import type { ChannelName, LiveEvent } from './live-event.ts'
import type { Subscription } from './subscription.ts'

/**
 * Subscriptions of an organization to one channel. Users who only see their own are found by it, so that an event costs
 * nothing for the thousands whom it does not concern.
 */
export class Audience {
  private readonly channel: ChannelName
  private readonly everybody = new Set<Subscription>()
  private readonly byPerson = new Map<string, Set<Subscription>>()
  /** Users and teams by which a subscription is found. */
  private readonly people = new Map<Subscription, readonly string[]>()

  constructor(channel: ChannelName) {
    this.channel = channel
  }

  get isEmpty(): boolean {
    return this.everybody.size === 0 && this.people.size === 0
  }

  add(subscription: Subscription): void {
    const people = peopleOf(this.channel, subscription.caller)
    if (people === undefined) return void this.everybody.add(subscription)
    this.people.set(subscription, people)
    for (const person of people) {
      const others = this.byPerson.get(person)
      if (others === undefined) this.byPerson.set(person, new Set([subscription]))
      else others.add(subscription)
    }
  }

  remove(subscription: Subscription): void {
    this.everybody.delete(subscription)
    for (const person of this.people.get(subscription) ?? []) {
      const others = this.byPerson.get(person)
      others?.delete(subscription)
      if (others?.size === 0) this.byPerson.delete(person)
    }
    this.people.delete(subscription)
  }

  /** All subscriptions that the event may concern, each once. */
  of({ people }: LiveEvent): Iterable<Subscription> {
    if (this.people.size === 0) return this.everybody
    if (people === undefined) return [...this.everybody, ...this.people.keys()]
    const own = people.flatMap((person) => [...(this.byPerson.get(person) ?? [])])
    return [...this.everybody, ...(people.length > 1 ? new Set(own) : own)]
  }
}

/** Users and teams whose records a caller sees on a channel; undefined for a caller who sees more. */
const peopleOf = (channel: ChannelName, { permissions, userId, teamIds }: UserCaller): string[] | undefined => {
  if (channel === 'notification') return [userId]
  return channel === 'task' && !permissions.has('dispatch/task') ? [userId, ...teamIds] : undefined
}
