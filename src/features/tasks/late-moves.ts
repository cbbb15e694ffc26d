import type { JsonObject } from '../../kernel/json.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { type HeldSpan, isHandedOver, type TaskFact } from './held-spans.ts'
import type { LateStep, TaskValues } from './views.ts'

/** A start or finish that arrives after the office changed the task. */
export interface LateMove {
  type: 'start' | 'finish'
  /** Time at the device, ms since the epoch. */
  at: number
  place?: JsonObject
  userId: string
}

const LATE_MAX = 100

/**
 * The task after its user's offline work, by its events alone; undefined if the work does not count. Work finished
 * before a change is finished; work only started leaves the change in force. The last fact is the present task. No
 * clock is assumed to be behind here: that never counts against a change.
 */
export const decideLate = (
  facts: readonly TaskFact[],
  spans: readonly HeldSpan[],
  move: LateMove,
): TaskValues | undefined => {
  const { type, at, place, userId } = move
  const current = facts[facts.length - 1].values
  const step: LateStep = { type, at: formatTime(at), by: userId, ...(place !== undefined && { place }) }
  if (isKnown(facts, step)) return current
  if (!isHeld(spans, at) || turnBefore(facts, at) === 'cancelled') return undefined
  if (isOwn(facts, move) || (current.late ?? []).length >= LATE_MAX) return undefined
  const start = type === 'finish' ? startFor(facts, move) : undefined
  if (type === 'finish' && start === undefined) return undefined
  if (type === 'start' && isStillTheirs(facts, spans, at))
    return { ...current, ...startedBy(step), state: 'inProgress' }
  const next = { ...current, late: [...(current.late ?? []), step] }
  if (start !== undefined) return hasFinish(facts, at) ? next : finished(facts, start, step)
  const isCancelled = current.state === 'cancelled' && current.startedAt === undefined
  return isCancelled ? { ...next, ...startedBy(step) } : next
}

/** Whether a user who had the task then could fill it in: it was theirs, and not over. */
export const couldFill = (facts: readonly TaskFact[], spans: readonly HeldSpan[], atMs: number): boolean =>
  isHeld(spans, atMs) && turnBefore(facts, atMs) === 'open'

interface Turn {
  atMs: number
  to: 'open' | 'finished' | 'cancelled'
}

/** Each end or reopening of a task, in order of effective time. */
const turnsIn = (facts: readonly TaskFact[]): Turn[] =>
  facts
    .flatMap(({ atMs, values }, i) => {
      const to = turnOf(values.state)
      return to === (i === 0 ? 'open' : turnOf(facts[i - 1].values.state)) ? [] : [{ atMs, to }]
    })
    .sort((a, b) => a.atMs - b.atMs)

const turnOf = (state: TaskValues['state']): Turn['to'] =>
  state === 'finished' || state === 'cancelled' ? state : 'open'

/** State of a task; work at the moment of finishing precedes it. */
const turnBefore = (facts: readonly TaskFact[], ms: number): Turn['to'] =>
  turnsIn(facts).findLast(({ atMs, to }) => (to === 'finished' ? atMs < ms : atMs <= ms))?.to ?? 'open'

const isHeld = (spans: readonly HeldSpan[], ms: number): boolean =>
  spans.some(({ fromMs, toMs }) => ms >= fromMs && ms < toMs)

/** Whether nothing since changed the user's assignment. */
const isStillTheirs = (facts: readonly TaskFact[], spans: readonly HeldSpan[], ms: number): boolean => {
  const { state } = facts[facts.length - 1].values
  const span = spans.find(({ fromMs, toMs }) => ms >= fromMs && ms < toMs)
  return state === 'assigned' && span?.ended === undefined && turnsIn(facts).every(({ atMs }) => atMs <= ms)
}

/** Facts that reopen a finished task, in log order. */
const redone = (facts: readonly TaskFact[]): TaskFact[] =>
  facts.filter(({ values }, i) => i > 0 && facts[i - 1].values.state === 'finished' && values.state !== 'finished')

/** Whether there is a finish in the relevant period: from the last reopening until the next. */
const hasFinish = (facts: readonly TaskFact[], ms: number): boolean =>
  facts[facts.length - 1].values.state === 'finished' || redone(facts).some(({ atMs }) => atMs > ms)

/** Whether this user's own move of that kind is already recorded in the relevant period. */
const isOwn = (facts: readonly TaskFact[], { type, at, userId }: LateMove): boolean => {
  const { state, startedBy: starter } = facts[facts.length - 1].values
  if (type === 'start' && state === 'inProgress' && starter === userId) return true
  const end = redone(facts).find(({ atMs }) => atMs > at)?.revision ?? Number.POSITIVE_INFINITY
  const round = facts.filter(({ revision }) => revision < end)
  const last = round[round.length - 1].values
  return last.state === 'finished' && last.finishedBy === userId
}

/** The start that precedes a finish: the user's own, or the start for all assignees. */
const startFor = (facts: readonly TaskFact[], { at, userId }: LateMove): LateStep | undefined => {
  const since = redone(facts).findLast(({ atMs }) => atMs <= at)?.atMs ?? Number.NEGATIVE_INFINITY
  const late = (facts[facts.length - 1].values.late ?? []).filter(({ type }) => type === 'start')
  const turns = turnsIn(facts).filter(({ to }) => to !== 'finished')
  const isUndone = (ms: number): boolean => turns.some(({ atMs }) => atMs > ms && atMs <= at)
  return [...startsIn(facts), ...late]
    .map((step) => ({ step, ms: Date.parse(step.at) }))
    .filter(({ step, ms }) => ms <= at && ms >= since && (step.by === userId || !isUndone(ms)))
    .sort((a, b) => a.ms - b.ms)
    .at(-1)?.step
}

/** Starts that took effect. */
const startsIn = (facts: readonly TaskFact[]): LateStep[] =>
  facts.flatMap(({ values: { startedAt, startedBy: by, startedPlace: place } }, i) => {
    const before = facts[i - 1]?.values
    if (startedAt === undefined || by === undefined) return []
    if (startedAt === before?.startedAt && by === before.startedBy) return []
    return [{ type: 'start' as const, at: startedAt, by, ...(place !== undefined && { place }) }]
  })

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

const finished = (facts: readonly TaskFact[], start: LateStep, { at, by, place }: LateStep): TaskValues => {
  const { cancelledAt: _at, cancelReason: _why, startedPlace: _where, ...others } = facts[facts.length - 1].values
  const atMs = Date.parse(at)
  const later = facts.filter((fact, i) => i > 0 && fact.atMs > atMs && isMove(facts[i - 1].values, fact.values))
  return {
    ...others,
    ...startedBy(start),
    state: 'finished',
    finishedAt: at,
    finishedBy: by,
    ...(place !== undefined && { finishedPlace: place }),
    overtaken: [...(others.overtaken ?? []), ...later.map(({ revision }) => revision)],
  }
}

const isMove = (before: TaskValues, after: TaskValues): boolean =>
  after.state !== before.state || isHandedOver(before, after)
