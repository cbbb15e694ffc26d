import type { Clock } from '../../kernel/clock.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Backlog } from './backlog.ts'
import type { OwnedPartition } from './partition.ts'
import { HEALTHY, type ReceiverHealth } from './receiver-health.ts'
import type { Run } from './owed-rows.ts'

/** Work of one automation under way, over all partitions of this process. */
export interface Sender {
  automationId: string
  organizationId: string
  health: ReceiverHealth
  /** Its health was read; nothing is sent before. */
  isKnown: boolean
  underWay: number
  /** Concurrent attempts; grows with fast answers, falls with slow ones. */
  limit: number
  isSkipping: boolean
  /** Due runs are looked at before this turn of the event loop ends. */
  isWoken: boolean
  /** Lower bound of the automation's version. */
  version: number
  cancelTimer: (() => void) | undefined
}

const LIMIT_FIRST = 8
const LIMIT_MIN = 4
const LIMIT_MAX = 128
/** Limit of actions that write here, whose commits are shared: the more at once, the fewer. */
const LIMIT_INSIDE_MAX = 256
const FAST_MS = 500
const SLOW_MS = 2_000

export const newSender = (automationId: string, organizationId: string): Sender => ({
  automationId,
  organizationId,
  health: HEALTHY,
  isKnown: false,
  underWay: 0,
  limit: LIMIT_FIRST,
  isSkipping: false,
  isWoken: false,
  version: 0,
  cancelTimer: undefined,
})

/** The limit after an attempt of `durationMs`: a fast receiver doubles it with each round, a slow one halves it. */
export const limitAfter = (limit: number, durationMs: number, isOutside: boolean): number => {
  if (durationMs < FAST_MS) return Math.min(isOutside ? LIMIT_MAX : LIMIT_INSIDE_MAX, limit + 1)
  return durationMs < SLOW_MS ? limit : Math.max(LIMIT_MIN, limit >> 1)
}

export interface Due {
  owned: OwnedPartition
  run: Run
}

/** No attempt of the automation begins during this work. */
export const held = async (sender: Sender, work: () => Promise<void>): Promise<void> => {
  sender.isSkipping = true
  try {
    await work()
  } finally {
    sender.isSkipping = false
  }
}

export interface Waiting {
  owned: OwnedPartition
  backlog: Backlog
}

export const backlogsOf = (owned: Iterable<OwnedPartition>, automationId: string): Waiting[] => {
  const waiting: Waiting[] = []
  for (const one of owned) {
    const backlog = one.pending.get(automationId)
    if (backlog !== undefined) waiting.push({ owned: one, backlog })
  }
  return waiting
}

export const takeOldest = (waiting: readonly Waiting[], now: number): Due | undefined => {
  let from: Waiting | undefined
  let oldest: Run | undefined
  for (const one of waiting) {
    const run = one.backlog.order.peek(now)
    if (run === undefined || (oldest !== undefined && run.owedAt >= oldest.owedAt)) continue
    oldest = run
    from = one
  }
  const run = from?.backlog.order.take(now)
  return from === undefined || run === undefined ? undefined : { owned: from.owned, run }
}

/** Due time of the next run that waits in memory, ms since the epoch; undefined when none waits there. */
export const nextDueAt = (waiting: readonly Waiting[]): number | undefined => {
  let next: number | undefined
  for (const { backlog } of waiting) {
    const dueAt = backlog.order.nextDueAt()
    if (dueAt !== undefined && (next === undefined || dueAt < next)) next = dueAt
  }
  return next
}

/** Counts the attempts under way in this process, against a bound, and reports when none is left. */
export class UnderWay {
  /** Senders that want to start more and may not. */
  readonly starved = new Set<Sender>()
  private readonly max: number
  private count = 0
  private onEmpty: (() => void) | undefined

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.count
  }

  get isFull(): boolean {
    return this.count >= this.max
  }

  enter(): void {
    this.count++
  }

  leave(): void {
    if (--this.count === 0) this.onEmpty?.()
  }

  /** Resolves when nothing is under way any more, at the latest after `limitMs`. */
  empty(clock: Clock, limitMs: number): Promise<void> {
    if (this.count === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = clock.after(limitMs, resolve)
      this.onEmpty = () => {
        cancel()
        resolve()
      }
    })
  }
}

const OUTSIDE_MAX = 1_024
const INSIDE_MAX = 512
const KNOWN = 10_000

/** The places of attempts in this process: local writes have their own, which hanging receivers do not take. */
export class Places {
  private readonly outside: UnderWay
  private readonly inside = new UnderWay(INSIDE_MAX)
  /** Whether the last attempt of an automation called an outside server. */
  private readonly callOutside = new RecentMap<string, boolean>(KNOWN)

  constructor(outsideMax = OUTSIDE_MAX) {
    this.outside = new UnderWay(outsideMax)
  }

  /** Attempts that have a place. */
  get size(): number {
    return this.outside.size + this.inside.size
  }

  /** Places of an automation; an unknown one may call an outside server. */
  of({ automationId }: Sender): UnderWay {
    return this.callOutside.get(automationId) === false ? this.inside : this.outside
  }

  note({ automationId }: Sender, isOutside: boolean): void {
    this.callOutside.set(automationId, isOutside)
  }

  /** The sender wants no more of them. */
  forget(sender: Sender): void {
    for (const places of [this.outside, this.inside]) places.starved.delete(sender)
  }

  async empty(clock: Clock, limitMs: number): Promise<void> {
    await Promise.all([this.outside, this.inside].map((places) => places.empty(clock, limitMs)))
  }
}
