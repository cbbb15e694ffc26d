import { deactivateAutomation } from '../../features/automations/automation.ts'
import { runsStream } from '../../features/automations/events.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { StaleCommit } from '../../engines/table-store.ts'
import { StreamLost } from '../../kit/consumers/owned-stream.ts'
import type { Lag } from '../../kit/consumers/follower.ts'
import type { PartitionConsumer } from '../../kit/consumers/partition-consumer.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import { untilDone } from '../../kit/consumers/retry.ts'
import type { Services } from '../../kit/services.ts'
import type { Actions } from './actions/action.ts'
import type { AutomationsListed } from './activations.ts'
import { ActiveAutomations } from './active-automations.ts'
import type { Directory } from './directory.ts'
import { hearAutomations } from './hear-automations.ts'
import type { HearFacts } from './hear-facts.ts'
import { hearSubjects } from './hear-subjects.ts'
import { OWED_RUNS } from './owed-rows.ts'
import { automationsOf, type OwedFact } from './owed-facts.ts'
import { oweHeard, type OweOptions, oweRuns, type TransitionEntry } from './owe.ts'
import { CHANGES_MAX, takePartition, type OwnedPartition } from './partition.ts'
import { PayRuns, type DeliveryOutcome } from './pay.ts'
import { HealthTable, RECEIVER_HEALTH } from './receiver-health.ts'
import { SteadyTime } from './retry-schedule.ts'
import { type Activations, owePast } from './owe-past.ts'
import { RunsSweep } from './sweep-runs.ts'

export interface DispatcherOptions extends Pick<Services, 'log' | 'tables' | 'clock' | 'keyring' | 'logger'> {
  actions: Actions
  directory: Directory
  /** Number of partitions of the log; without it, events of tasks and records are not followed. */
  partitions?: number
  /** Waits for the lists before an action reads them; without it they are taken to be complete. */
  settle?: Settle
  automationsListed?: AutomationsListed
  /** Delay before each retry (`--webhook-schedule`), ms. */
  scheduleMs: readonly number[]
  /** Events older than this when logged owe no run (`--automation-max-age`), ms. */
  maxAgeMs: number
  /** Runs of one automation that may wait; further ones are skipped. Default 100,000. */
  waitingMax?: number
  /** Attempts under way that call an outside server. Default 1,024. */
  outsideMax?: number
  /** Retention of the streams of runs (`--automation-log-days`), ms. Default: for ever. */
  retentionMs?: number
  /** Revision up to which the log of runs has a partition's stream, which keeps the rest. Default: all of it. */
  listedThrough?: (partition: number) => Promise<number>
  /** Counts attempts by outcome, and runs that were skipped. */
  onDelivery?: (outcome: DeliveryOutcome, count: number) => void
}

const WAITING_MAX = 100_000
/** Time between stores: runs paid within it leave no row; a restart reads as much of the runs' stream again. */
const STORE_MS = 5_000
const DRAIN_MS = 2_000
const RETRY_MS = 1_000

/**
 * Owes and pays the runs of automations: a consumer of the transition streams, one owner for each partition. Owed runs
 * are in `automation-runs-<partition>` before the next transition is looked at; paid ones are recorded there too, so a
 * crash at any moment leaves a run owed once, and delivered at least once under one id.
 */
export class Dispatcher implements PartitionConsumer<TransitionEntry> {
  readonly name = 'dispatch'
  onLost: PartitionConsumer<TransitionEntry>['onLost']
  private readonly options: DispatcherOptions
  private readonly owned = new Map<number, OwnedPartition>()
  private readonly health: HealthTable
  private readonly payer: PayRuns
  private readonly time: SteadyTime
  private readonly hear: HearFacts
  private readonly subjects: HearFacts | undefined
  private cancelStore: (() => void) | undefined
  private readonly sweep: RunsSweep | undefined
  private readonly active: ActiveAutomations
  private readonly end = new AbortController()

  constructor(options: DispatcherOptions) {
    this.options = options
    const { tables, clock, retentionMs, onDelivery = () => undefined } = options
    const owned = (): OwnedPartition[] => [...this.owned.values()]
    this.health = new HealthTable(tables)
    this.active = new ActiveAutomations(tables)
    this.time = new SteadyTime(clock)
    this.payer = new PayRuns({
      ...options,
      time: this.time,
      health: this.health,
      onDelivery,
      deactivate: (automation, reason) => deactivateAutomation(options, automation, reason),
    })
    this.hear = hearAutomations({
      ...options,
      owned,
      skip: (automationId, owned) => this.payer.skipAll(automationId, owned),
      wake: (automationId, organizationId) => this.payer.wake(automationId, organizationId),
      renew: (...edited) => this.payer.renew(...edited),
      owePast: (activations, owned) => this.owePast(activations, owned),
    })
    if (retentionMs !== undefined) this.sweep = new RunsSweep(options, { ...options, retentionMs, owned })
    const { partitions } = options
    if (partitions !== undefined)
      this.subjects = hearSubjects({
        ...options,
        partitions,
        owned,
        begin: () => this.active.forget(),
        owe: (events, owned) => this.heard(events, owned),
      })
  }

  /** Declares its tables; call it before the first `load`. */
  async declare(): Promise<void> {
    await this.options.tables.declare(OWED_RUNS)
    await this.options.tables.declare(RECEIVER_HEALTH)
  }

  /** Takes the partition over and starts to pay its owed runs. */
  async load(partition: number): Promise<number> {
    this.release(partition)
    const onFailure = (error: unknown): void => {
      this.warn('runs not appended', error, partition)
      if (owned.stream.isLost) this.lost(owned)
    }
    const owned = await takePartition({ ...this.options, time: this.time, onFailure }, partition)
    this.owned.set(partition, owned)
    this.payer.attach(owned)
    this.hear.restart()
    this.subjects?.restart()
    if (this.cancelStore === undefined) {
      this.storeLater()
      this.sweep?.startLater()
    }
    return owned.pending.progress.source
  }

  /** Owes the runs of one event of the partition's transitions. @throws StreamLost */
  async handle(entry: TransitionEntry, partition: number): Promise<void> {
    const owned = this.partition(partition)
    await this.inTurn(owned, async () => {
      const facts = await this.untilAnswered(() => oweRuns(this.oweOptions(), owned.pending, entry))
      if (facts === undefined) return // it is closed
      if (facts.length === 0) owned.pending.sourceDone(entry.revision)
      await this.append(owned, facts)
      owned.lookedAt = entry.position
    })
  }

  /** A partition that this process owns. @throws StreamLost */
  partition(partition: number): OwnedPartition {
    const owned = this.owned.get(partition)
    if (owned === undefined) throw new StreamLost(runsStream(partition))
    return owned
  }

  /** Lag of the streams followed beside the transitions. */
  lags(now: number): Lag[] {
    return [...this.hear.lags(now), ...(this.subjects?.lags(now) ?? [])]
  }

  /** Work that goes on by itself, without waiting for the time. */
  get activity(): { attempts: number; isReading: boolean } {
    return { attempts: this.payer.attemptsUnderWay, isReading: this.payer.isReading }
  }

  /** Attempts under way are awaited for a moment; the next owner resends those without an answer. */
  async leave(partition: number): Promise<void> {
    const owned = this.owned.get(partition)
    await this.payer.restPartition(partition, DRAIN_MS)
    try {
      await owned?.pending.store()
      await this.health.store()
    } catch (error) {
      this.warn('owed runs not stored', error, partition)
    }
    owned?.stream.close()
    this.release(partition)
  }

  /** Releases a partition, for another process to take. */
  release(partition: number): void {
    this.payer.detach(partition)
    this.owned.delete(partition)
  }

  /** Another process has taken it, or given it back: what is not heard beside the transitions would wait for one of them. */
  private lost(owned: OwnedPartition): void {
    const { partition } = owned
    if (this.owned.get(partition) !== owned) return
    this.release(partition)
    this.onLost?.(partition)
  }

  /** Stores the state. Attempts under way are awaited a moment; without an answer they are resent after a restart. */
  async close(): Promise<void> {
    await this.stop()
    await this.payer.drain(DRAIN_MS)
    await this.storeAll()
    for (const partition of [...this.owned.keys()]) this.release(partition)
  }

  /** Ends like a crash: nothing more is stored. */
  async abandon(): Promise<void> {
    for (const partition of [...this.owned.keys()]) this.release(partition)
    await this.stop()
  }

  private async stop(): Promise<void> {
    this.end.abort()
    this.cancelStore?.()
    await this.sweep?.close()
    await this.hear.close()
    await this.subjects?.close()
  }

  /** In the turn of transitions: none is looked at between this read and the moment from which automations count. */
  private owePast(activations: Activations, owned: OwnedPartition): Promise<void> {
    const positions = [...activations.values()]
    return this.inTurn(owned, async () => {
      const { lookedAt = Number.POSITIVE_INFINITY } = owned
      if (lookedAt > Math.min(...positions))
        for await (const facts of owePast(this.options.log, this.oweOptions(), owned.pending, activations))
          await this.append(owned, facts)
      owned.pending.heardAutomations(Math.max(...positions))
    })
  }

  /** Owes the runs of events of tasks and records. */
  private heard(events: readonly RecordedEvent[], owned: OwnedPartition): Promise<void> {
    return this.inTurn(owned, async () => {
      const { pending, rates } = owned
      const facts = await this.untilAnswered(() => oweHeard(this.oweOptions(), pending, rates, events, this.active))
      if (facts === undefined) return // it is closed
      await this.append(owned, facts)
      owned.pending.heardLog(events[events.length - 1].position)
    })
  }

  /** One event of a partition is owed at a time: the sequence of its runs continues that of those before. */
  private async inTurn(owned: OwnedPartition, work: () => Promise<void>): Promise<void> {
    const done = owned.turn.then(work, work)
    owned.turn = done.catch(() => undefined)
    await done
    if (owned.pending.rows.changesWaiting > CHANGES_MAX) await this.untilAnswered(() => owned.pending.store())
  }

  private async append(owned: OwnedPartition, facts: readonly OwedFact[]): Promise<void> {
    await Promise.all(facts.map(({ fact, bytes }) => owned.stream.append(fact, bytes)))
    for (const [automationId, organizationId] of automationsOf(facts)) this.payer.wake(automationId, organizationId)
  }

  private oweOptions(): OweOptions {
    const { tables, clock, directory, maxAgeMs, waitingMax = WAITING_MAX } = this.options
    const waiting = (automationId: string): number => this.payer.waiting(automationId)
    return { tables, directory, now: () => clock.now(), maxAgeMs, waitingMax, waiting }
  }

  /** A failed engine is awaited: giving the partition up would only resend attempts under way. @throws StreamLost */
  private untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
    return untilDone(ask, {
      clock: this.options.clock,
      signal: this.end.signal,
      retryMs: [RETRY_MS],
      isLasting: (error) => error instanceof StreamLost || error instanceof StaleCommit,
      onFailure: (error) => this.warn('engine asked again', error),
    })
  }

  private storeLater(): void {
    this.cancelStore = this.options.clock.after(STORE_MS, () => {
      void this.storeAll().finally(() => !this.end.signal.aborted && this.storeLater())
    })
  }

  private async storeAll(): Promise<void> {
    const stored = [...this.owned.values()].map(async (owned) => {
      try {
        await owned.pending.store()
      } catch (error) {
        this.warn('owed runs not stored', error, owned.partition)
        if (error instanceof StaleCommit) this.lost(owned)
      }
    })
    stored.push(this.health.store().catch((error: unknown) => this.warn('health of receivers not stored', error)))
    await Promise.all(stored)
  }

  private warn(what: string, error: unknown, partition?: number): void {
    this.options.logger.warn(what, {
      consumer: this.name,
      ...(partition !== undefined && { partition }),
      error: String(error),
    })
  }
}
