import type { TableStore } from '../../engines/table-store.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'
import { jittered } from './retry-schedule.ts'

export interface ReceiverHealth {
  failuresInRow: number
  /** Time of the first of the failures in a row, in steady time. */
  failingSince?: number
  /** Probes since the receiver counts as down. */
  probes: number
  /** Only while it counts as down: time of the next probe, in steady time, and its delay. */
  probeAt?: number
  probeDelayMs?: number
}

export const HEALTHY: ReceiverHealth = { failuresInRow: 0, probes: 0 }

/** Failures in a row after which a receiver is only probed. */
const FAILURES_TO_PROBE = 5
const FAILING_MAX_MS = 5 * 86_400_000
const PROBE_DELAY_MS = 5_000

export const isProbing = (health: ReceiverHealth): boolean => health.probeAt !== undefined

/** The health as another process may have stored it, with its own steady time: no delay becomes longer than it was. */
export const recalled = (health: ReceiverHealth, now: number): ReceiverHealth => {
  const { failingSince, probeAt, probeDelayMs = PROBE_DELAY_MS } = health
  return {
    ...health,
    ...(failingSince !== undefined && { failingSince: Math.min(failingSince, now) }),
    ...(probeAt !== undefined && { probeAt: Math.min(probeAt, now + probeDelayMs) }),
  }
}

/** Five days of nothing but failures. */
export const isGivenUp = (health: ReceiverHealth, now: number): boolean =>
  health.failuresInRow >= FAILURES_TO_PROBE &&
  health.failingSince !== undefined &&
  now - health.failingSince >= FAILING_MAX_MS

/** A run that no attempt could help, such as one whose event names no address, counts, but holds up no other run. */
export const healthAfter = (
  health: ReceiverHealth,
  outcome: { kind: string; ends?: string },
  wasProbe: boolean,
  at: number,
  scheduleMs: readonly number[],
  automationId: string,
): ReceiverHealth => {
  if (outcome.kind === 'done') return HEALTHY
  const failed = { ...health, failuresInRow: health.failuresInRow + 1, failingSince: health.failingSince ?? at }
  return outcome.ends === 'run' ? failed : afterFailure(failed, wasProbe, at, scheduleMs, automationId)
}

/**
 * The health after one more failure. A failed probe delays the next one by the next delay of the schedule, of which the
 * last repeats; other attempts still under way change nothing.
 */
const afterFailure = (
  failed: ReceiverHealth,
  wasProbe: boolean,
  at: number,
  scheduleMs: readonly number[],
  automationId: string,
): ReceiverHealth => {
  if (failed.failuresInRow < FAILURES_TO_PROBE || (isProbing(failed) && !wasProbe)) return failed
  const delayMs = scheduleMs[Math.min(failed.probes, scheduleMs.length - 1)] ?? PROBE_DELAY_MS
  const probeDelayMs = jittered(delayMs, `${automationId}:${failed.probes}`)
  return { ...failed, probes: failed.probes + 1, probeAt: at + probeDelayMs, probeDelayMs }
}

/** Health of receivers by automation, so that a restart does not press one that is down. */
export const RECEIVER_HEALTH: TableDeclaration = { name: 'dispatch-health', version: 1, lives: 'row' }

/** Keeps the health of receivers; changes are stored together, every few seconds. */
export class HealthTable {
  private readonly tables: TableStore
  private changed = new Map<string, ReceiverHealth>()

  constructor(tables: TableStore) {
    this.tables = tables
  }

  async get(automationId: string): Promise<ReceiverHealth> {
    const row =
      this.changed.get(automationId) ?? (await this.tables.get(RECEIVER_HEALTH.name, NO_ORGANIZATION, automationId))
    return (row as ReceiverHealth | undefined) ?? HEALTHY
  }

  put(automationId: string, health: ReceiverHealth): void {
    this.changed.set(automationId, health)
  }

  async store(): Promise<void> {
    if (this.changed.size === 0) return
    const taken = this.changed
    this.changed = new Map()
    try {
      await this.tables.commit(
        [...taken].map(([id, health]) => ({
          table: RECEIVER_HEALTH.name,
          scope: NO_ORGANIZATION,
          id,
          row: health === HEALTHY ? null : ({ ...health } as Row),
        })),
      )
    } catch (error) {
      for (const [id, health] of taken) if (!this.changed.has(id)) this.changed.set(id, health)
      throw error
    }
  }
}
