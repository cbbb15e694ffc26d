import type { ChannelName } from './event-ring.ts'
import type { Subscription } from './subscription.ts'

/** Which organizations have somebody who asked for a channel: for the others nothing is made of its events. */
export class Watchers {
  private readonly channel: ChannelName
  private readonly counts = new Map<string, number>()

  constructor(channel: ChannelName) {
    this.channel = channel
  }

  get isEmpty(): boolean {
    return this.counts.size === 0
  }

  has(organizationId: string): boolean {
    return this.counts.has(organizationId)
  }

  add(subscription: Subscription): void {
    this.count(subscription, 1)
  }

  remove(subscription: Subscription): void {
    this.count(subscription, -1)
  }

  private count({ wanted, caller: { organizationId } }: Subscription, more: number): void {
    if (!wanted.channels.has(this.channel)) return
    const count = (this.counts.get(organizationId) ?? 0) + more
    if (count > 0) this.counts.set(organizationId, count)
    else this.counts.delete(organizationId)
  }
}
