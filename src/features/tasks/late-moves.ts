import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { valueIn } from '../data/views.ts'
import { type HeldSpan, isHandedOver, type TaskFact } from './held-spans.ts'
import { CLOCKS_MS } from './moves.ts'
import type { LateStep, TaskValues } from './views.ts'

/** A start or finish that comes after the office changed the task. */
export interface LateMove {
  type: 'start' | 'finish'
  /** At the device, ms since the epoch. */
  at: number
  place?: JsonObject
  userId: string
}

/** Late steps that one task keeps. */
const LATE_MAX = 100

/**
 * The task after what its user did without a connection, by its events alone; undefined for what does not count. What was
 * finished before a change is finished; what was only started leaves the change in force. The last fact is the task as it is.
 */
export const decideLate = (
  facts: readonly TaskFact[],
  spans: readonly HeldSpan[],
  move: LateMove,
): TaskValues | undefined => {
  const current = facts[facts.length - 1].values
  const atMs = move.type === 'start' ? startOf(spans, move.at) : finishOf(facts, spans, move)
  if (atMs === undefined || isCancelledAt(facts, atMs)) return undefined
  const step: LateStep = {
    type: move.type,
    at: formatTime(atMs),
    by: move.userId,
    ...(move.place !== undefined && { place: move.place }),
  }
  if (isKnown(facts, step)) return current
  const hasStarted = current.state === 'inProgress' && current.startedBy === move.userId && move.type === 'start'
  const isOwn = hasStarted || (current.state === 'finished' && current.finishedBy === move.userId)
  if (isOwn || (current.late ?? []).length >= LATE_MAX) return undefined
  if (move.type === 'finish' && current.state !== 'finished') return finished(facts, step)
  const next = { ...current, late: [...(current.late ?? []), step] }
  const isCancelled = move.type === 'start' && current.state === 'cancelled' && current.startedAt === undefined
  return isCancelled ? { ...next, ...startedBy(step) } : next
}

/** Components that nobody wrote later than that. */
export const latestOnly = (facts: readonly TaskFact[], sent: JsonObject, atMs: number): JsonObject =>
  Object.fromEntries(
    Object.entries(sent).filter(([name]) => {
      const value = (fact: TaskFact | undefined) => fact && valueIn(fact.values.components, name)
      return !facts.some((fact, i) => i > 0 && fact.atMs > atMs && !isDeepStrictEqual(value(fact), value(facts[i - 1])))
    }),
  )

/** By a clock that is a little behind, a start is of the moment when it became theirs. */
const startOf = (spans: readonly HeldSpan[], at: number): number | undefined => {
  if (isHeld(spans, at)) return at
  const next = spans.find(({ fromMs, toMs }) => at < fromMs && at >= fromMs - CLOCKS_MS && fromMs < toMs)
  return next?.fromMs
}

const finishOf = (
  facts: readonly TaskFact[],
  spans: readonly HeldSpan[],
  { at, userId }: LateMove,
): number | undefined => {
  const start = startsOf(facts, userId)
    .map((step) => Date.parse(step.at))
    .filter((ms) => ms <= at + CLOCKS_MS)
    .sort((a, b) => a - b)
    .at(-1)
  if (start === undefined) return undefined
  const atMs = Math.max(at, start)
  return isHeld(spans, atMs) ? atMs : undefined
}

/** By the last cancellation or reopening until then. */
const isCancelledAt = (facts: readonly TaskFact[], ms: number): boolean => {
  const turns = facts.filter(({ atMs, values: { state } }, i) => {
    const before = facts[i - 1]?.values.state
    const isReopened = (state === 'new' || state === 'assigned') && (before === 'cancelled' || before === 'finished')
    return atMs <= ms && ((state === 'cancelled' && before !== 'cancelled') || isReopened)
  })
  return turns.sort((a, b) => a.atMs - b.atMs).at(-1)?.values.state === 'cancelled'
}

const isHeld = (spans: readonly HeldSpan[], ms: number): boolean =>
  spans.some(({ fromMs, toMs }) => ms >= fromMs && ms < toMs)

/** Starts of a user, those that left a change in force too. */
const startsOf = (facts: readonly TaskFact[], userId: string): LateStep[] => [
  ...facts.flatMap(({ values: { startedAt, startedBy: by, startedPlace } }) =>
    startedAt !== undefined && by === userId
      ? [{ type: 'start' as const, at: startedAt, by, ...(startedPlace !== undefined && { place: startedPlace }) }]
      : [],
  ),
  ...(facts[facts.length - 1].values.late ?? []).filter(({ type, by }) => type === 'start' && by === userId),
]

const isKnown = (facts: readonly TaskFact[], { type, at, by }: LateStep): boolean =>
  facts.some(({ values }) =>
    type === 'start'
      ? values.startedAt === at && values.startedBy === by
      : values.finishedAt === at && values.finishedBy === by,
  ) || (facts[facts.length - 1].values.late ?? []).some((one) => one.type === type && one.at === at && one.by === by)

const startedBy = ({ at, by, place }: LateStep): Partial<TaskValues> => ({
  startedAt: at,
  startedBy: by,
  ...(place !== undefined && { startedPlace: place }),
})

const finished = (facts: readonly TaskFact[], { at, by, place }: LateStep): TaskValues => {
  const { cancelledAt: _at, cancelReason: _why, startedPlace: _where, ...others } = facts[facts.length - 1].values
  const atMs = Date.parse(at)
  const start = startsOf(facts, by).findLast((step) => Date.parse(step.at) <= atMs)
  const later = facts.filter((fact, i) => i > 0 && fact.atMs > atMs && isMove(facts[i - 1].values, fact.values))
  return {
    ...others,
    ...(start !== undefined && startedBy(start)),
    state: 'finished',
    finishedAt: at,
    finishedBy: by,
    ...(place !== undefined && { finishedPlace: place }),
    overtaken: [...(others.overtaken ?? []), ...later.map(({ revision }) => revision)],
  }
}

const isMove = (before: TaskValues, after: TaskValues): boolean =>
  after.state !== before.state || isHandedOver(before, after)
