import { ATTEMPTS_MADE } from '../../features/automations/events.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import type { Fact } from '../../kernel/event.ts'
import { StreamLost } from '../../kit/consumers/owned-stream.ts'
import type { Logger } from '../../kernel/logger.ts'
import { type Attempted, attemptRun, findAutomation, type AttemptOptions } from './attempt.ts'
import type { Run } from './owed-rows.ts'
import { hiddenFact, isFirstAttempt, skipRuns, type OwnedPartition } from './partition.ts'
import { hasRoom } from './backlog.ts'
import { healthAfter, HEALTHY, type HealthTable, isGivenUp, isProbing, recalled } from './receiver-health.ts'
import type { SteadyTime } from './retry-schedule.ts'
import {
  backlogsOf,
  type Due,
  held,
  limitAfter,
  newSender,
  nextDueAt,
  Places,
  type Sender,
  takeOldest,
  UnderWay,
  type Waiting,
} from './sender.ts'

/** `gone`: its action can never succeed again; `failing`: five days of nothing but failures. */
export type EndReason = 'gone' | 'failing'

export type DeliveryOutcome = 'succeeded' | 'failed' | 'dead' | 'skipped'

export interface PayOptions extends AttemptOptions {
  logger: Logger
  health: HealthTable
  /** Deactivates an automation whose receiver is gone or has failed for days; false when it was changed meanwhile. */
  deactivate: (automation: AutomationRow, reason: EndReason) => Promise<boolean>
  onDelivery: (outcome: DeliveryOutcome, count: number) => void
  /** Clock by which runs and probes are due. */
  time: SteadyTime
  /** Attempts under way that call an outside server; beyond it an automation has one at a time. Default 1,024. */
  outsideMax?: number
}

/** The automation at the beginning of attempts that share the lookup. */
type Finding = Promise<AutomationRow | undefined>

/** After a failure of the service's own (an engine is down): no attempt is used up. */
const OWN_RETRY_MS = 1_000
/** Timers of a day work, those of a month do not: the platform would fire them at once. */
const SLEEP_MAX_MS = 3_600_000

/**
 * Pays what partitions owe. Each automation has its own place in the line, its own bound on attempts under way, and its
 * own health: a failing receiver is probed, a slow one gets fewer attempts at once, and none delays another.
 */
export class PayRuns {
  private readonly options: PayOptions
  private readonly owned = new Map<number, OwnedPartition>()
  private readonly senders = new Map<string, Sender>()
  private readonly places: Places
  private readonly attempts = new WeakMap<OwnedPartition, UnderWay>()
  private isDraining = false

  constructor(options: PayOptions) {
    this.options = options
    this.places = new Places(options.outsideMax)
  }

  /** Pays for a partition from now on. */
  attach(owned: OwnedPartition): void {
    this.owned.set(owned.partition, owned)
    this.attempts.set(owned, new UnderWay(Number.POSITIVE_INFINITY))
    for (const { automationId, organizationId } of owned.pending.all()) this.wake(automationId, organizationId)
  }

  /** Starts nothing more for a partition; resolves when its attempts are recorded, at the latest after `limitMs`. */
  async restPartition(partition: number, limitMs: number): Promise<void> {
    const owned = this.owned.get(partition)
    this.owned.delete(partition)
    if (owned !== undefined) await this.attempts.get(owned)?.empty(this.options.clock, limitMs)
  }

  /** Releases a partition, and automations without runs here; attempts under way are not recorded. */
  detach(partition: number): void {
    this.owned.get(partition)?.stream.close()
    this.owned.delete(partition)
    for (const sender of this.senders.values()) if (sender.isKnown) this.rest(sender)
  }

  /** Starts nothing more; resolves when all attempts under way are recorded, at the latest after `limitMs`. */
  drain(limitMs: number): Promise<void> {
    this.isDraining = true
    for (const sender of this.senders.values()) sender.cancelTimer?.()
    return this.places.empty(this.options.clock, limitMs)
  }

  /** Something may be due for this automation. */
  wake(automationId: string, organizationId: string): void {
    this.pump(this.senderOf(automationId, organizationId))
  }

  /** The automation was edited, and has this version now: earlier failures no longer count. */
  renew(automationId: string, organizationId: string, version: number): void {
    const sender = this.senderOf(automationId, organizationId)
    sender.version = version
    sender.health = HEALTHY
    this.options.health.put(automationId, HEALTHY)
    this.pump(sender)
  }

  /** Number of owed and unpaid runs of an automation, over all partitions of this process. */
  waiting(automationId: string): number {
    return [...this.owned.values()].reduce((count, { pending }) => count + pending.count(automationId), 0)
  }

  /** Attempts that have begun and are not recorded yet. */
  get attemptsUnderWay(): number {
    return this.places.size
  }

  /** A read is under way that may lead to more attempts. */
  get isReading(): boolean {
    const backlogs = [...this.owned.values()].flatMap(({ pending }) => pending.all())
    return backlogs.some(({ reading }) => reading) || [...this.senders.values()].some(({ isKnown }) => !isKnown)
  }

  /** The automation is no longer active: its remaining runs are skipped. */
  async skipAll(automationId: string, only?: OwnedPartition): Promise<void> {
    for (const owned of only === undefined ? [...this.owned.values()] : [only]) {
      this.options.onDelivery('skipped', await skipRuns(owned, automationId))
    }
  }

  private senderOf(automationId: string, organizationId: string): Sender {
    let sender = this.senders.get(automationId)
    if (sender !== undefined) return sender
    this.senders.set(automationId, (sender = newSender(automationId, organizationId)))
    this.learnHealth(sender)
    return sender
  }

  private learnHealth(sender: Sender): void {
    const { automationId } = sender
    this.options.health.get(automationId).then(
      (health) => {
        sender.health = health === HEALTHY ? HEALTHY : recalled(health, this.options.time.now())
        sender.isKnown = true
        this.pump(sender)
      },
      (error) => {
        this.options.logger.warn('receiver health not read', { automationId, error: String(error) })
        this.options.clock.after(OWN_RETRY_MS, () => this.learnHealth(sender))
      },
    )
  }

  /** Starts everything possible, once for all that ends or comes in the same turn of the event loop. */
  private pump(sender: Sender): void {
    if (sender.isWoken) return
    sender.isWoken = true
    queueMicrotask(() => {
      sender.isWoken = false
      this.start(sender)
    })
  }

  /** Starts everything possible, and sets the timer for later runs. */
  private start(sender: Sender): void {
    if (!sender.isKnown || sender.isSkipping || this.isDraining) return
    const now = this.options.time.now()
    const isProbe = isProbing(sender.health)
    if (isProbe && sender.underWay > 0) return
    if (isProbe && now < (sender.health.probeAt ?? 0)) return this.wakeAt(sender, sender.health.probeAt ?? now)
    const { automationId, organizationId } = sender
    const backlogs = backlogsOf(this.owned.values(), automationId)
    for (const one of backlogs) this.refill(sender, one)
    const under = this.places.of(sender)
    let finding: Finding | undefined
    while (sender.underWay < (isProbe ? 1 : sender.limit)) {
      if (sender.underWay > 0 && under.isFull) return void under.starved.add(sender)
      const due = takeOldest(backlogs, now)
      if (due === undefined) return this.rest(sender)
      finding ??= findAutomation(this.options, organizationId, automationId, sender.version)
      void this.attempt(sender, under, due, isProbe, finding)
    }
  }

  private refill(sender: Sender, { owned: { pending }, backlog }: Waiting): void {
    if (backlog.reading || !hasRoom(backlog)) return
    pending.refill(backlog).then(
      (isFilled) => isFilled && this.pump(sender),
      (error) => {
        this.options.logger.warn('owed runs not read', { automationId: sender.automationId, error: String(error) })
        this.wakeAt(sender, this.options.time.now() + OWN_RETRY_MS)
      },
    )
  }

  /** Nothing is due: sleeps until something is, or forgets an automation without remaining runs. */
  private rest(sender: Sender): void {
    const dueAt = nextDueAt(backlogsOf(this.owned.values(), sender.automationId))
    if (dueAt !== undefined) this.wakeAt(sender, dueAt)
    else if (sender.underWay === 0 && this.waiting(sender.automationId) === 0) this.forget(sender)
  }

  private forget(sender: Sender): void {
    sender.cancelTimer?.()
    if (this.senders.get(sender.automationId) === sender) this.senders.delete(sender.automationId)
    this.places.forget(sender)
  }

  private wakeAt(sender: Sender, at: number): void {
    sender.cancelTimer?.()
    const inMs = Math.min(Math.max(0, at - this.options.time.now()), SLEEP_MAX_MS)
    sender.cancelTimer = this.options.clock.after(inMs, () => {
      sender.cancelTimer = undefined
      this.pump(sender)
    })
  }

  private async attempt(sender: Sender, under: UnderWay, due: Due, isProbe: boolean, finding: Finding): Promise<void> {
    const { owned, run } = due
    sender.underWay++
    under.enter()
    this.attempts.get(owned)?.enter()
    try {
      const automation = await finding
      if (automation?.isActive !== true) return await this.giveUp(sender, owned, run)
      const attempted = await attemptRun(this.options, run, automation, isFirstAttempt(owned, run))
      if (attempted === 'hidden') return await this.note(owned, hiddenFact(run), 'skipped')
      const { attempt } = attempted
      const reason = this.learn(sender, attempted, isProbe)
      const fact = { type: ATTEMPTS_MADE, data: { attempts: [attempt] } }
      const noted = this.note(owned, fact, attempt.status === 'pending' ? 'failed' : attempt.status)
      if (reason === undefined) await noted
      else await held(sender, () => noted.then(() => this.end(sender, automation, reason)))
    } catch (error) {
      if (!(error instanceof StreamLost)) this.giveBack(owned, run, error)
    } finally {
      sender.underWay--
      under.leave()
      this.attempts.get(owned)?.leave()
      this.pump(sender)
      this.feedStarved(under)
    }
  }

  private async note({ stream }: OwnedPartition, fact: Fact, outcome: DeliveryOutcome): Promise<void> {
    await stream.append(fact)
    this.options.onDelivery(outcome, 1)
  }

  /** Learns from the outcome of an attempt; answers the reason if it ends the automation. */
  private learn(sender: Sender, { outcome, attempt, isOutside }: Attempted, isProbe: boolean): EndReason | undefined {
    this.places.note(sender, isOutside)
    sender.limit = limitAfter(sender.limit, attempt.durationMs, isOutside)
    const { health, automationId } = sender
    if (!isOutside || (outcome.kind === 'done' && health.failuresInRow === 0)) return undefined
    const now = this.options.time.now()
    sender.health = healthAfter(health, outcome, isProbe, now, this.options.scheduleMs, automationId)
    this.options.health.put(automationId, sender.health)
    if (outcome.kind === 'failed' && outcome.ends === 'automation') return 'gone'
    return isGivenUp(sender.health, now) ? 'failing' : undefined
  }

  /** Deactivates an automation and skips its remaining runs; where that fails, its next failure tries again. */
  private async end(sender: Sender, automation: AutomationRow, reason: EndReason): Promise<void> {
    const { organizationId, automationId } = sender
    const { logger, health, deactivate } = this.options
    try {
      if (!(await deactivate(automation, reason))) return
      logger.warn('automation deactivated', { organizationId, automationId, reason })
      sender.health = HEALTHY
      health.put(automationId, HEALTHY)
      await this.skipAll(automationId)
    } catch (error) {
      logger.error('automation not deactivated', { automationId, error: String(error) })
    }
  }

  /** The automation is gone or inactive. */
  private async giveUp(sender: Sender, owned: OwnedPartition, run: Run): Promise<void> {
    owned.pending.get(run.automationId)?.order.again(run.runId, run)
    if (!sender.isSkipping) await held(sender, () => this.skipAll(sender.automationId))
  }

  private giveBack(owned: OwnedPartition, run: Run, error: unknown): void {
    const { time, logger } = this.options
    logger.warn('delivery not attempted', { automationId: run.automationId, runId: run.runId, error: String(error) })
    owned.pending.get(run.automationId)?.order.again(run.runId, { ...run, dueAt: time.now() + OWN_RETRY_MS })
  }

  private feedStarved(under: UnderWay): void {
    for (const sender of under.starved) {
      if (under.isFull) return
      under.starved.delete(sender)
      this.start(sender)
    }
  }
}
