import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { TaskState, TaskValues } from './views.ts'

/** One row of the table of moves; `at` is the time at the device, ms since the epoch, if sent. */
export type Move =
  | { type: 'assign'; at?: number; assigneeIds?: string[]; teamId?: string | null }
  | { type: 'move'; hubId: string }
  | { type: 'start'; at?: number; place?: JsonObject }
  | { type: 'finish'; at?: number; place?: JsonObject }
  | { type: 'cancel'; at?: number; reason?: string }
  | { type: 'reopen'; reason?: string }

/** The state of the task does not allow the move. */
export class MoveRefused extends Error {
  constructor(
    move: Move['type'] | 'fill',
    state: TaskState,
    message = `A task that is ${WORDS[state]} cannot ${VERBS[move]}.`,
  ) {
    super(message)
    this.name = 'MoveRefused'
  }
}

const WORDS: { [state in TaskState]: string } = {
  new: 'new',
  assigned: 'assigned',
  inProgress: 'in progress',
  finished: 'finished',
  cancelled: 'cancelled',
}

const VERBS: { [move in Move['type'] | 'fill']: string } = {
  assign: 'be assigned',
  move: 'move to another hub',
  start: 'be started',
  finish: 'be finished',
  cancel: 'be cancelled',
  reopen: 'be reopened',
  fill: 'be filled in',
}

/** Most that a device's clock may be ahead. */
const AHEAD_MS = 86_400_000
/** Most that work on a device may precede the task's creation. */
const BEFORE_CREATION_MS = 86_400_000
/** Most that two clocks may differ. */
export const CLOCKS_MS = 300_000

export interface MoveContext {
  /** ms since the epoch. */
  now: number
  createdAt: string
  /** User who moves it; absent if the service does. */
  userId?: string
  /** No clock is behind: moves dated before the previous move did precede it. */
  isExact?: boolean
}

/**
 * The task after a move. Repeating a move with the same time changes nothing; one that arrives after the office changed
 * the task is judged by its events (late-moves.ts).
 * @throws MoveRefused if the state does not allow it, Failure invalid for an impossible time
 */
export const decideMove = (task: TaskValues, move: Move, context: MoveContext): TaskValues => {
  if (move.type === 'assign') return assign(task, move, context)
  if (move.type === 'move') return moveTo(task, move.hubId, context)
  if (move.type === 'reopen') return reopen(task, move.reason, context)
  if (isRepeated(task, move, context)) return task
  const atMs = timeOf(task, move, context)
  if (move.type === 'cancel') return cancel(task, atMs, move.reason)
  return move.type === 'start' ? start(task, atMs, move.place, context) : finish(task, atMs, move.place, context)
}

const assign = (
  task: TaskValues,
  { at, assigneeIds = task.assigneeIds, teamId = task.teamId }: Move & { type: 'assign' },
  context: MoveContext,
): TaskValues => {
  if (at !== undefined) assertMoment(at, context)
  const { teamId: before, ...others } = task
  const next = { ...others, assigneeIds, ...(teamId != null && { teamId }) }
  if (task.state === 'inProgress') return at === undefined ? next : { ...next, handedAt: formatTime(at) }
  if (task.state !== 'new' && task.state !== 'assigned') throw new MoveRefused('assign', task.state)
  const { assignedAt, ...unassigned } = next
  if (isNobodys(next)) return { ...unassigned, state: 'new' }
  const isSame = next.teamId === before && isDeepStrictEqual(assigneeIds, task.assigneeIds)
  const known = isSame ? assignedAt : undefined
  return { ...next, state: 'assigned', assignedAt: known ?? formatTime(at ?? context.now) }
}

export const isNobodys = ({ assigneeIds, teamId }: Pick<TaskValues, 'assigneeIds' | 'teamId'>): boolean =>
  assigneeIds.length === 0 && teamId === undefined

/** The writer, which knows hubs and teams, removes assignees who may not stay. */
const moveTo = (task: TaskValues, hubId: string, { now }: MoveContext): TaskValues => {
  if (task.state !== 'new' && task.state !== 'assigned') throw new MoveRefused('move', task.state)
  if (hubId === task.hubId) return task
  if (isNobodys(task)) return { ...task, hubId }
  return { ...task, hubId, state: 'assigned', assignedAt: task.assignedAt ?? formatTime(now) }
}

/** Filled components stay; the writer determines who may still have the task, to do it again. */
const reopen = (task: TaskValues, reason: string | undefined, { now }: MoveContext): TaskValues => {
  if (task.state !== 'finished' && task.state !== 'cancelled') throw new MoveRefused('reopen', task.state)
  const { startedAt: _a, startedBy: _b, startedPlace: _c, finishedAt: _d, finishedBy: _e, ...begun } = task
  const { finishedPlace: _f, cancelledAt: _g, cancelReason: _h, reopenReason: _i, ...others } = begun
  return {
    ...others,
    state: 'assigned',
    assignedAt: formatTime(now),
    ...(reason !== undefined && { reopenReason: reason }),
  }
}

const start = (
  task: TaskValues,
  atMs: number,
  place: JsonObject | undefined,
  { userId, isExact }: MoveContext,
): TaskValues => {
  const next = (startedAt: string): TaskValues => {
    const { startedBy: _before, ...others } = task
    return {
      ...others,
      startedAt,
      ...(userId !== undefined && { startedBy: userId }),
      ...(place !== undefined && { startedPlace: place }),
    }
  }
  if (task.state === 'assigned')
    return { ...next(momentAfter(atMs, task.assignedAt, 'start', task, isExact)), state: 'inProgress' }
  throw new MoveRefused('start', task.state)
}

const finish = (
  task: TaskValues,
  atMs: number,
  place: JsonObject | undefined,
  { userId, isExact }: MoveContext,
): TaskValues => {
  const { cancelledAt, cancelReason: _reason, ...others } = task
  const next: TaskValues = {
    ...others,
    state: 'finished',
    finishedAt: formatTime(atMs),
    ...(userId !== undefined && { finishedBy: userId }),
    ...(place !== undefined && { finishedPlace: place }),
  }
  if (task.state === 'inProgress')
    return { ...next, finishedAt: momentAfter(atMs, task.startedAt, 'finish', task, isExact) }
  throw new MoveRefused('finish', task.state)
}

const cancel = (task: TaskValues, atMs: number, reason: string | undefined): TaskValues => {
  if (task.state === 'finished' || task.state === 'cancelled') throw new MoveRefused('cancel', task.state)
  return {
    ...task,
    state: 'cancelled',
    cancelledAt: momentAfter(atMs, task.startedAt ?? task.assignedAt, 'cancel', task),
    ...(reason !== undefined && { cancelReason: reason }),
  }
}

type TimedMove = Move & { type: 'start' | 'finish' | 'cancel' }

const AT = { start: 'startedAt', finish: 'finishedAt', cancel: 'cancelledAt' } as const

const BY = { start: 'startedBy', finish: 'finishedBy' } as const

/** A device that got no answer resends the same move. */
const isRepeated = (task: TaskValues, { type, at }: TimedMove, { userId }: MoveContext): boolean => {
  if (at === undefined || task[AT[type]] === undefined) return false
  const by = type === 'cancel' ? undefined : task[BY[type]]
  const moment = earliest(task, type)
  const isClose = moment !== undefined && at < moment && at >= moment - CLOCKS_MS
  return (by === undefined || by === userId) && task[AT[type]] === formatTime(isClose ? moment : at)
}

/** Time of the preceding move, ms since the epoch. */
const earliest = ({ assignedAt, startedAt }: TaskValues, type: TimedMove['type']): number | undefined => {
  const before = (type === 'start' ? undefined : startedAt) ?? assignedAt
  return before === undefined ? undefined : Date.parse(before)
}

const timeOf = (task: TaskValues, { type, at }: TimedMove, context: MoveContext): number => {
  // A device clock that is ahead blocks nobody: present moves follow its reported time.
  if (at === undefined) return Math.max(context.now, earliest(task, type) ?? context.now)
  if (type === 'cancel') assertMoment(at, context)
  assertNotAhead(at, context.now)
  return at
}

/** @throws Failure invalid */
export const assertNotAhead = (at: number, now: number): void => {
  if (at > now + AHEAD_MS) throw invalid('/at', 'must be at most 24 hours ahead')
}

/** @throws Failure invalid */
const assertMoment = (at: number, { now, createdAt }: MoveContext): void => {
  assertNotAhead(at, now)
  if (at < Date.parse(createdAt) - BEFORE_CREATION_MS) throw invalid('/at', 'must not be before the task was made')
}

/** Time of a move; with a clock slightly behind, the time of the previous move. @throws MoveRefused */
const momentAfter = (
  atMs: number,
  before: string | undefined,
  type: TimedMove['type'],
  { state }: TaskValues,
  isExact = false,
): string => {
  const beforeMs = before === undefined ? atMs : Date.parse(before)
  if (atMs >= beforeMs - (isExact ? 0 : CLOCKS_MS)) return formatTime(Math.max(atMs, beforeMs))
  throw new MoveRefused(type, state, `A task cannot ${VERBS[type]} before ${before}, the time of the move before it.`)
}
