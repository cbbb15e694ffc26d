import { currentTrigger, type RunTrigger } from '../../features/automations/events.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { RETRY_AFTER_MAX_MS } from './retry-schedule.ts'

/** A run that is owed and not paid. */
export interface Run {
  runId: string
  automationId: string
  sequence: number
  trigger: RunTrigger
  /** When it was owed, ms since the epoch. */
  owedAt: number
  /** Failed attempts so far. */
  attempts: number
  /** When the next attempt is due, in steady time; 0 for at once. */
  dueAt: number
  /** How long the next attempt was put off, ms. */
  delayMs: number
  /** No other run waits for it any more. */
  alone: boolean
  /** Its row is in the table, or on its way there. */
  stored: boolean
}

/** What must survive a restart: one row for each run that is owed and not paid, in the scope of its partition. */
export const OWED_RUNS: TableDeclaration = {
  name: 'dispatch-run',
  version: 2,
  lives: 'partition',
  range: ['orderKey', 'dueKey'],
}

/** Name of the consumer that writes the rows of a partition, and their scope. */
export const scopeOf = (partition: number): string => `dispatcher-${partition}`

export const rowOf = (run: Run): Row => ({
  runId: run.runId,
  automationId: run.automationId,
  sequence: run.sequence,
  trigger: run.trigger,
  owedAt: run.owedAt,
  attempts: run.attempts,
  dueAt: run.dueAt,
  delayMs: run.delayMs,
  alone: run.alone,
  ...(run.alone
    ? { dueKey: dueKey(run.automationId, run.dueAt) }
    : { orderKey: orderKey(run.automationId, run.sequence) }),
})

export const runOf = (row: Row): Run => ({
  runId: row.runId as string,
  automationId: row.automationId as string,
  sequence: row.sequence as number,
  trigger: currentTrigger(row.trigger as RunTrigger),
  owedAt: row.owedAt as number,
  attempts: row.attempts as number,
  dueAt: row.dueAt as number,
  delayMs: (row.delayMs as number | undefined) ?? RETRY_AFTER_MAX_MS,
  alone: row.alone as boolean,
  stored: true,
})

/** Numbers are padded to the digits of 2^53, so that keys sort as they do. */
export const orderKey = (automationId: string, sequence: number): string =>
  `${automationId}:${String(sequence).padStart(16, '0')}`
export const dueKey = (automationId: string, dueAt: number): string =>
  `${automationId}:${String(dueAt).padStart(16, '0')}`
/** Sorts after every key of the automation. */
export const keyEnd = (automationId: string): string => `${automationId};`
