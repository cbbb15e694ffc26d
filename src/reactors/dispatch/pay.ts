import { ATTEMPTS_MADE } from '../../features/automations/events.ts'
import type { AutomationRow } from '../../features/automations/views.ts'
import { StreamLost } from '../../kit/consumers/owned-stream.ts'
import type { Logger } from '../../kernel/logger.ts'
import { type Attempted, attemptRun, findAutomation, type AttemptOptions } from './attempt.ts'
import type { Run } from './owed-rows.ts'
import { isFirstAttempt, skipFact, skipRuns, type OwnedPartition } from './partition.ts'
import { hasRoom } from './backlog.ts'
import { afterFailure, HEALTHY, type HealthTable, isGivenUp, isProbing, recalled } from './receiver-health.ts'
import type { SteadyTime } from './retry-schedule.ts'
import { type Due, limitAfter, newSender, nextDueAt, oldestDue, Places, UnderWay, type Sender } from './sender.ts'

/** `gone`: what it does can never be done again; `failing`: five days of nothing but failures. */
export type EndReason = 'gone' | 'failing'

export type DeliveryOutcome = 'succeeded' | 'failed' | 'dead' | 'skipped'

export interface PayOptions extends AttemptOptions {
  logger: Logger
  health: HealthTable
  /** Deactivates an automation whose receiver is gone or has failed for days; false when it was changed meanwhile. */
  deactivate: (automation: AutomationRow, reason: EndReason) => Promise<boolean>
  onDelivery: (outcome: DeliveryOutcome, count: number) => void
  /** By which runs and probes are due. */
  time: SteadyTime
  /** Attempts under way that call somebody outside; beyond it an automation has one at a time. Default 1,024. */
  outsideMax?: number
}

/** After a failure of our own (an engine is down): no attempt is used up. */
const OWN_RETRY_MS = 1_000
/** Timers of a day are fine, those of a month are not: the platform would fire them at once. */
const SLEEP_MAX_MS = 3_600_000

/**
 * Pays what partitions owe. Each automation has its own place in the line, its own bound on what is under way, and its
 * own health: a receiver that fails is probed, one that is slow gets fewer attempts at once, and none delays another.
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

  /** Begins nothing more for a partition; resolves when what is under way for it is recorded, at the latest after `limitMs`. */
  async restPartition(partition: number, limitMs: number): Promise<void> {
    const owned = this.owned.get(partition)
    this.owned.delete(partition)
    if (owned !== undefined) await this.attempts.get(owned)?.empty(this.options.clock, limitMs)
  }

  /** Lets a partition go, and what was known of automations that have nothing here then; what is under way is not recorded. */
  detach(partition: number): void {
    this.owned.get(partition)?.stream.close()
    this.owned.delete(partition)
    for (const sender of this.senders.values()) if (sender.isKnown) this.rest(sender)
  }

  /** Begins nothing more; resolves when all that is under way is recorded, at the latest after `limitMs`. */
  drain(limitMs: number): Promise<void> {
    this.isDraining = true
    for (const sender of this.senders.values()) sender.cancelTimer?.()
    return this.places.empty(this.options.clock, limitMs)
  }

  /** Something may be due for this automation. */
  wake(automationId: string, organizationId: string): void {
    this.pump(this.senderOf(automationId, organizationId))
  }

  /** The automation was edited, and has this version now: what failed before does not count any more. */
  renew(automationId: string, organizationId: string, version: number): void {
    const sender = this.senderOf(automationId, organizationId)
    sender.version = version
    sender.health = HEALTHY
    this.options.health.put(automationId, HEALTHY)
    this.pump(sender)
  }

  /** Runs of an automation that are owed and not paid, over all partitions of this process. */
  waiting(automationId: string): number {
    return [...this.owned.values()].reduce((count, { pending }) => count + pending.count(automationId), 0)
  }

  /** Attempts that have begun and are not recorded yet. */
  get attemptsUnderWay(): number {
    return this.places.size
  }

  /** Something is being read that more attempts may follow from. */
  get isReading(): boolean {
    const backlogs = [...this.owned.values()].flatMap(({ pending }) => pending.all())
    return backlogs.some(({ reading }) => reading) || [...this.senders.values()].some(({ isKnown }) => !isKnown)
  }

  /** The automation is not active any more: what is left of it is skipped. */
  async skipAll(automationId: string, only?: OwnedPartition): Promise<void> {
    for (const owned of only === undefined ? [...this.owned.values()] : [only]) {
      this.options.onDelivery('skipped', await skipRuns(owned, automationId))
    }
  }

  private senderOf(automationId: string, organizationId: string): Sender {
    const known = this.senders.get(automationId)
    if (known !== undefined) return known
    const sender = newSender(automationId, organizationId)
    this.senders.set(automationId, sender)
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

  /** Starts all that may be started now, and sets the timer for what is due later. */
  private pump(sender: Sender): void {
    if (!sender.isKnown || sender.isSkipping || this.isDraining) return
    const now = this.options.time.now()
    const isProbe = isProbing(sender.health)
    if (isProbe && sender.underWay > 0) return
    if (isProbe && now < (sender.health.probeAt ?? 0)) return this.wakeAt(sender, sender.health.probeAt ?? now)
    this.refill(sender)
    const under = this.places.of(sender)
    while (sender.underWay < (isProbe ? 1 : sender.limit)) {
      if (sender.underWay > 0 && under.isFull) return void under.starved.add(sender)
      const oldest = oldestDue(this.owned.values(), sender.automationId, now)
      if (oldest === undefined) return this.rest(sender)
      oldest.owned.pending.get(sender.automationId)?.order.take(now)
      sender.underWay++
      under.enter()
      this.attempts.get(oldest.owned)?.enter()
      void this.attempt(sender, under, oldest, isProbe)
    }
  }

  private refill(sender: Sender): void {
    for (const { pending } of this.owned.values()) {
      const backlog = pending.get(sender.automationId)
      if (backlog === undefined || backlog.reading || !hasRoom(backlog)) continue
      pending.refill(backlog).then(
        (isFilled) => isFilled && this.pump(sender),
        (error) => {
          this.options.logger.warn('owed runs not read', { automationId: sender.automationId, error: String(error) })
          this.wakeAt(sender, this.options.time.now() + OWN_RETRY_MS)
        },
      )
    }
  }

  /** Nothing is due: sleeps until something is, or forgets an automation that has nothing left. */
  private rest(sender: Sender): void {
    const dueAt = nextDueAt(this.owned.values(), sender.automationId)
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

  private async attempt(sender: Sender, under: UnderWay, { owned, run }: Due, isProbe: boolean): Promise<void> {
    try {
      const { organizationId } = run.trigger
      const automation = await findAutomation(this.options, organizationId, run.automationId, sender.version)
      if (automation?.isActive === true) await this.deliver(sender, owned, run, automation, isProbe)
      else await this.giveUp(sender, owned, run)
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

  private async deliver(
    sender: Sender,
    owned: OwnedPartition,
    run: Run,
    automation: AutomationRow,
    isProbe: boolean,
  ): Promise<void> {
    const attempted = await attemptRun(this.options, run, automation, isFirstAttempt(owned, run))
    if (attempted === 'hidden') return this.hide(owned, run)
    const { outcome, attempt, isOutside } = attempted
    this.places.note(sender, isOutside)
    sender.limit = limitAfter(sender.limit, attempt.durationMs)
    const reason = isOutside ? this.noteHealth(sender, outcome, isProbe) : undefined
    const record = async (): Promise<void> => {
      await owned.stream.append({ type: ATTEMPTS_MADE, data: { attempts: [attempt] } })
      this.options.onDelivery(attempt.status === 'pending' ? 'failed' : attempt.status, 1)
    }
    if (reason === undefined) return record()
    await this.held(sender, async () => {
      await record()
      await this.end(sender, automation, reason)
    })
  }

  private async hide({ stream }: OwnedPartition, { runId, automationId, owedAt, trigger }: Run): Promise<void> {
    await stream.append(skipFact(automationId, trigger.organizationId, 'hidden', [{ runId, owedAt }]))
    this.options.onDelivery('skipped', 1)
  }

  /** Answers why the automation ends with this outcome, if it does. */
  private noteHealth(sender: Sender, outcome: Attempted['outcome'], isProbe: boolean): EndReason | undefined {
    const { health, automationId } = sender
    if (outcome.kind === 'done' && health.failuresInRow === 0) return undefined
    const now = this.options.time.now()
    sender.health =
      outcome.kind === 'done' ? HEALTHY : afterFailure(health, isProbe, now, this.options.scheduleMs, automationId)
    this.options.health.put(automationId, sender.health)
    if (outcome.kind === 'failed' && outcome.ends === 'automation') return 'gone'
    return isGivenUp(sender.health, now) ? 'failing' : undefined
  }

  /** Deactivates an automation and skips what it has left; where that fails, its next failure tries again. */
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

  /** Nothing of the automation is begun while this work lasts. */
  private async held(sender: Sender, work: () => Promise<void>): Promise<void> {
    sender.isSkipping = true
    try {
      await work()
    } finally {
      sender.isSkipping = false
    }
  }

  /** The automation is gone or inactive. */
  private async giveUp(sender: Sender, owned: OwnedPartition, run: Run): Promise<void> {
    owned.pending.get(run.automationId)?.order.again(run.runId, run)
    if (!sender.isSkipping) await this.held(sender, () => this.skipAll(sender.automationId))
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
      this.pump(sender)
    }
  }
}
