import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { TaskState, TaskValues } from './views.ts'

/** One row of the table of moves; `at` is the time at the device, ms since the epoch, where it was said. */
export type Move =
  | { type: 'assign'; assigneeIds?: string[]; teamId?: string | null }
  | { type: 'move'; hubId: string }
  | { type: 'start'; at?: number; place?: JsonObject }
  | { type: 'finish'; at?: number; place?: JsonObject }
  | { type: 'cancel'; at?: number; reason?: string }

/** What the state of a task does not allow. */
export class MoveRefused extends Error {
  constructor(move: Move['type'], state: TaskState) {
    super(`A task that is ${WORDS[state]} cannot ${VERBS[move]}.`)
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

const VERBS: { [move in Move['type']]: string } = {
  assign: 'be assigned',
  move: 'move to another hub',
  start: 'be started',
  finish: 'be finished',
  cancel: 'be cancelled',
}

/** A device's clock may be ahead by so much. */
const AHEAD_MS = 86_400_000
/** What was done on a device before the service heard of the task. */
const BEFORE_CREATION_MS = 86_400_000

export interface MoveContext {
  /** ms since the epoch. */
  now: number
  createdAt: string
}

/**
 * The task after a move. A move that comes late is judged by its time: one of before the cancellation counts, so that
 * what was finished without a connection is finished. The same move again, with its time, changes nothing.
 * @throws MoveRefused for what the state does not allow, Failure invalid for a time that cannot be
 */
export const decideMove = (task: TaskValues, move: Move, context: MoveContext): TaskValues => {
  if (move.type === 'assign') return assign(task, move, context)
  if (move.type === 'move') return moveTo(task, move.hubId)
  if (isRepeated(task, move)) return task
  const atMs = timeOf(task, move, context)
  if (move.type === 'start') return start(task, atMs, move.place)
  return move.type === 'finish' ? finish(task, atMs, move.place) : cancel(task, atMs, move.reason)
}

const assign = (
  task: TaskValues,
  { assigneeIds = task.assigneeIds, teamId = task.teamId }: Move & { type: 'assign' },
  { now }: MoveContext,
): TaskValues => {
  const { teamId: _before, ...others } = task
  const next = { ...others, assigneeIds, ...(teamId != null && { teamId }) }
  if (task.state === 'inProgress') return next
  if (task.state !== 'new' && task.state !== 'assigned') throw new MoveRefused('assign', task.state)
  const { assignedAt, ...unassigned } = next
  if (assigneeIds.length === 0 && next.teamId === undefined) return { ...unassigned, state: 'new' }
  return { ...next, state: 'assigned', assignedAt: assignedAt ?? formatTime(now) }
}

/** Whoever may not stay is left to the writer, who knows hubs and teams. */
const moveTo = (task: TaskValues, hubId: string): TaskValues => {
  if (hubId === task.hubId) return task
  if (task.state !== 'new' && task.state !== 'assigned') throw new MoveRefused('move', task.state)
  const { assignedAt: _assignedAt, ...others } = task
  return { ...others, hubId, state: 'new' }
}

const start = (task: TaskValues, atMs: number, place: JsonObject | undefined): TaskValues => {
  const next = { ...task, startedAt: formatTime(atMs), ...(place !== undefined && { startedPlace: place }) }
  if (task.state === 'assigned') {
    assertAfter(atMs, task.assignedAt)
    return { ...next, state: 'inProgress' }
  }
  // It was under way when it was cancelled: that holds, and when it began is known now.
  const isLate =
    task.state === 'cancelled' && task.startedAt === undefined && isBetween(task.assignedAt, atMs, task.cancelledAt)
  if (isLate) return next
  throw new MoveRefused('start', task.state)
}

const finish = (task: TaskValues, atMs: number, place: JsonObject | undefined): TaskValues => {
  const { cancelledAt, cancelReason: _reason, ...others } = task
  const next: TaskValues = {
    ...others,
    state: 'finished',
    finishedAt: formatTime(atMs),
    ...(place !== undefined && { finishedPlace: place }),
  }
  if (task.state === 'inProgress') {
    assertAfter(atMs, task.startedAt)
    return next
  }
  if (task.state === 'cancelled' && isBetween(task.startedAt, atMs, cancelledAt)) return next
  throw new MoveRefused('finish', task.state)
}

const cancel = (task: TaskValues, atMs: number, reason: string | undefined): TaskValues => {
  if (task.state === 'finished' || task.state === 'cancelled') throw new MoveRefused('cancel', task.state)
  assertAfter(atMs, task.startedAt ?? task.assignedAt)
  return {
    ...task,
    state: 'cancelled',
    cancelledAt: formatTime(atMs),
    ...(reason !== undefined && { cancelReason: reason }),
  }
}

const AT = { start: 'startedAt', finish: 'finishedAt', cancel: 'cancelledAt' } as const

/** A device that got no answer sends the same again. */
const isRepeated = (task: TaskValues, { type, at }: Move & { type: keyof typeof AT }): boolean =>
  at !== undefined && task[AT[type]] === formatTime(at)

const timeOf = (
  { assignedAt, startedAt }: TaskValues,
  { type, at }: Move & { type: keyof typeof AT },
  { now, createdAt }: MoveContext,
): number => {
  // A device whose clock is ahead keeps nobody from going on: what is done now comes after what it said.
  const before = (type === 'start' ? undefined : startedAt) ?? assignedAt
  if (at === undefined) return Math.max(now, before === undefined ? now : Date.parse(before))
  if (at > now + AHEAD_MS) throw invalid('/at', 'must be at most 24 hours ahead')
  if (at < Date.parse(createdAt) - BEFORE_CREATION_MS) throw invalid('/at', 'must not be before the task was made')
  return at
}

const assertAfter = (atMs: number, before: string | undefined): void => {
  if (before !== undefined && atMs < Date.parse(before))
    throw invalid('/at', `must not be before ${before}, the time of the move before it`)
}

const isBetween = (from: string | undefined, atMs: number, to: string | undefined): boolean =>
  from !== undefined && to !== undefined && atMs >= Date.parse(from) && atMs < Date.parse(to)
