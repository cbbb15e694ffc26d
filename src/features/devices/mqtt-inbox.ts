import { setMaxListeners } from 'node:events'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { pause, RETRY_MS } from '../../kit/consumers/retry.ts'

/** A message that the broker keeps until it is acknowledged, or one of QoS 0, which nobody keeps. */
export interface Message {
  topic: string
  /** Messages of one sender are stored one after the other: a point overtaken by another would become late. */
  sender: string
  payload: Uint8Array
  /** Undefined for a message of QoS 0. */
  acknowledge?(): void
}

export interface InboxOptions {
  /** Resolves once all storable points of the message are durable. @throws Failure if that is impossible now */
  store(message: Message): Promise<void>
  clock: Clock
  onFailure(message: Message, error: unknown): void
}

/** Messages processed at a time, so that many share one append. */
export const UNDER_WAY_MAX = 64
/** Most messages and bytes put aside until their tracker is created; beyond, none is taken until one is stored. */
export const ASIDE_MAX = 1_000
export const ASIDE_BYTES_MAX = 16 * 1024 * 1024
export const ASIDE_RETRY_MS = 5_000

interface Entry {
  message: Message
  state: 'underWay' | 'stored' | 'aside' | 'dropped'
}

/**
 * Messages of one connection to a broker, acknowledged in order of arrival, each once it is durable. While nothing can
 * be stored, all of them wait. Those of a sender without a tracker are put aside, so that the others proceed: they are
 * retried, and stay with the broker. Only stored messages are acknowledged: when the memory for put-aside messages is
 * full, the broker keeps all that follow (docs/decisions/0024). Those of QoS 0 make room, the oldest first: to wait for
 * them would keep nothing, and hold up the others.
 */
export class MqttInbox {
  private readonly options: InboxOptions
  private readonly ending = new AbortController()
  private readonly inOrder: Entry[] = []
  private readonly aside = new Set<Entry>()
  private asideBytes = 0
  private readonly bySender = new Map<string, Entry[]>()
  private onRoom: (() => void) | undefined

  constructor(options: InboxOptions) {
    this.options = options
    setMaxListeners(0, this.ending.signal) // as many as messages that pause
  }

  /** Unacknowledged messages. */
  get waiting(): number {
    return this.inOrder.length + this.aside.size
  }

  /** Whether what the broker has sent is not read on until there is room. */
  get isHolding(): boolean {
    return this.onRoom !== undefined
  }

  /** Whether no message is taken until one that was put aside is stored. */
  get isFull(): boolean {
    return this.aside.size >= ASIDE_MAX || this.asideBytes >= ASIDE_BYTES_MAX
  }

  /** Calls `next` when another message may come. */
  take(message: Message, next: () => void): void {
    const entry: Entry = { message, state: 'underWay' }
    const { sender } = message
    const queue = this.bySender.get(sender)
    this.inOrder.push(entry)
    this.onRoom = next
    if (queue === undefined) {
      const first = [entry]
      this.bySender.set(sender, first)
      void this.settleAll(sender, first)
    } else {
      queue.push(entry)
      if (queue[0].state === 'aside' || isDropped(queue[0])) this.putAside(entry)
    }
    this.giveRoom()
  }

  /** Ends with the connection: the broker resends unacknowledged messages. */
  end(): void {
    this.ending.abort()
    this.onRoom?.()
  }

  private async settleAll(sender: string, queue: Entry[]): Promise<void> {
    while (queue.length > 0 && !this.ending.signal.aborted) {
      await this.settle(queue)
      queue.shift()
    }
    this.bySender.delete(sender)
  }

  private async settle(queue: readonly Entry[]): Promise<void> {
    const { store, clock, onFailure } = this.options
    const { signal } = this.ending
    const [entry] = queue
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await store(entry.message)
        return this.stored(entry)
      } catch (error) {
        if (isDropped(entry)) return
        onFailure(entry.message, error)
        if (!isOfAll(error)) for (const one of [...queue]) this.putAside(one)
        const delayMs = entry.state === 'aside' ? ASIDE_RETRY_MS : RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]
        await pause(clock, delayMs, signal)
        if (isDropped(entry)) return
      }
    }
  }

  private stored(entry: Entry): void {
    if (this.ending.signal.aborted || entry.state === 'dropped') return
    if (entry.state === 'aside') {
      this.takeOut(entry)
      entry.message.acknowledge?.()
      return this.giveRoom()
    }
    entry.state = 'stored'
    this.acknowledgeFirst()
  }

  private putAside(entry: Entry): void {
    if (entry.state !== 'underWay' || this.ending.signal.aborted) return
    entry.state = 'aside'
    this.inOrder.splice(this.inOrder.indexOf(entry), 1)
    this.aside.add(entry)
    this.asideBytes += entry.message.payload.byteLength
    this.dropOldest()
    this.acknowledgeFirst()
  }

  private takeOut(entry: Entry): void {
    this.aside.delete(entry)
    this.asideBytes -= entry.message.payload.byteLength
  }

  /** Room for others, of messages that nobody keeps. The first of a sender leaves its queue after its next pause. */
  private dropOldest(): void {
    for (const entry of this.aside) {
      if (!this.isFull) return
      if (entry.message.acknowledge !== undefined) continue
      this.takeOut(entry)
      entry.state = 'dropped'
      const queue = this.bySender.get(entry.message.sender) ?? []
      const at = queue.indexOf(entry)
      if (at > 0) queue.splice(at, 1)
    }
  }

  private acknowledgeFirst(): void {
    const end = this.inOrder.findIndex(({ state }) => state !== 'stored')
    for (const { message } of this.inOrder.splice(0, end < 0 ? this.inOrder.length : end)) message.acknowledge?.()
    this.giveRoom()
  }

  private giveRoom(): void {
    if (this.inOrder.length >= UNDER_WAY_MAX || this.isFull) return
    const next = this.onRoom
    this.onRoom = undefined
    next?.()
  }
}

const isDropped = ({ state }: Entry): boolean => state === 'dropped'

/** Whether the error is not specific to the message: all others would fail too. */
const isOfAll = (error: unknown): boolean => error instanceof Failure && !OWN_FAULTS.includes(error.code)

const OWN_FAULTS: readonly string[] = ['unknown_tracker', 'forbidden_tracker', 'tracker_limit', 'too_large']
