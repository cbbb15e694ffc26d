import type { TableStore } from '../../engines/table-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { bool, id, list, optional, text, time, withDefault } from '../../kernel/schema.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Row } from '../../kernel/table.ts'
import { seesRow, type Audience } from '../../kit/http/list-query.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { ToldOnce, WriteContext } from '../../kit/resource/declaration.ts'
import { NAMES_NOTHING } from '../../kit/resource/references.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { TASKS, type TaskRow } from '../tasks/views.ts'
import { TRACKERS_TABLE, type TrackerRow } from '../trackers/views.ts'
import { endOfShare, isThere, makeShareToken, SHARES, type ShareRow, TASK_MS_MAX } from './views.ts'

const DAY_MS = 86_400_000
const TRACKER_MS_MAX = 7 * DAY_MS

/** Kinds of shares, each with its required permission. */
export const PERMISSIONS = { task: 'dispatch/task', tracker: 'edit/tracker' } as const

const TOKEN: ToldOnce = {
  member: 'token',
  example: 'h0Jt2…',
  make: (_id, { keyring }, seed) => {
    const { token, tokenHash } = makeShareToken(keyring, seed)
    return { told: token, kept: { tokenHash } }
  },
}

/** Users without the permission to share tasks see no shares of tasks, and the same for trackers. */
const AUDIENCE: Audience = {
  field: 'kind',
  keys: ({ permissions }) =>
    Object.entries(PERMISSIONS).flatMap(([kind, permission]) => (permissions.has(permission) ? [kind] : [])),
}

const kindOf = ({ taskId }: JsonObject): keyof typeof PERMISSIONS => (taskId === undefined ? 'tracker' : 'task')

/** A link for following a task or a tracker without an account. Shares never change: they end, or are deleted. */
export const share = defineResource({
  noun: 'share',
  plural: SHARES,
  tag: 'Shares',
  verbs: ['list', 'read', 'create', 'delete'],
  // No references: a shared task can be deleted, and its shares end with it.
  fields: {
    taskId: optional(id()),
    trackerId: optional(id()),
    expiresAt: optional(time()),
    showTrail: withDefault(bool(), false),
  },
  internal: { tokenHash: text({ max: 100 }), hubIds: list(id(), { max: 500 }) },
  secrets: { told: TOKEN },
  permissions: { view: PERMISSIONS.task, edit: PERMISSIONS.task },
  hubField: 'hubIds',
  audience: AUDIENCE,
  table: {
    indexes: { equality: ['taskId', 'trackerId', 'kind'], range: ['expiresAt'] },
    derived: (values) => ({ kind: [kindOf(values)] }),
  },
  rules: { keep: (write) => kept(write), checks: (write) => checkShare(write) },
  present: (rows, { services }) => withEnds(rows as ShareRow[], services.tables),
  example: { taskId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b', showTrail: true },
})

/** Rows with their end time: a share ends with its task or tracker, and with a task that is over. */
const withEnds = async (rows: readonly ShareRow[], tables: Pick<TableStore, 'getMany'>): Promise<ShareRow[]> => {
  const subjects = async (table: string, field: 'taskId' | 'trackerId'): Promise<Map<string, Row>> => {
    const ids = [...new Set(rows.flatMap((row) => row[field] ?? []))]
    const found = ids.length === 0 ? [] : await tables.getMany(table, rows[0].organizationId, ids)
    return new Map(found.flatMap((one) => (one === undefined ? [] : [[String(one._id), one]])))
  }
  const [tasks, trackers] = await Promise.all([subjects(TASKS, 'taskId'), subjects(TRACKERS_TABLE, 'trackerId')])
  return rows.map((row) => {
    const task = tasks.get(row.taskId ?? '') as TaskRow | undefined
    // Without its subject a share has ended, and is soon removed.
    if (!isThere(row, task ?? trackers.get(row.trackerId ?? ''))) return { ...row, expiresAt: row.updatedAt }
    return { ...row, expiresAt: formatTime(endOfShare(row, task)) }
  })
}

/** Adds the hubs of the shared subject. @throws Failure invalid */
const kept = async ({ services: { tables }, organizationId, values, before }: WriteContext): Promise<JsonObject> => {
  if (before !== undefined) return values
  const { taskId, trackerId, expiresAt } = values
  if ((taskId === undefined) === (trackerId === undefined))
    throw invalid(taskId === undefined ? '/taskId' : '/trackerId', 'must be one of taskId and trackerId')
  if (taskId !== undefined) {
    const task = await tables.get<TaskRow>(TASKS, organizationId, taskId as string)
    return { ...values, hubIds: task === undefined ? [] : [task.hubId] }
  }
  if (expiresAt === undefined) throw invalid('/expiresAt', 'is required for a tracker')
  const tracker = await tables.get<TrackerRow>(TRACKERS_TABLE, organizationId, trackerId as string)
  return { ...values, hubIds: tracker?.hubIds ?? [] }
}

/** @throws Failure forbidden, invalid, conflict for a task that has been over for too long */
const checkShare = async (write: WriteContext): Promise<void> => {
  const { caller, now, values, before } = write
  // Only the service changes a share: its hubs follow those of its subject.
  if (before !== undefined) return
  const { taskId, expiresAt } = values as { taskId?: string; expiresAt?: string }
  assertMayShare(caller, kindOf(values))
  const task = await sharedTask(write)
  const msMax = taskId === undefined ? TRACKER_MS_MAX : TASK_MS_MAX
  const end = expiresAt === undefined ? now + msMax : Date.parse(expiresAt)
  if (end <= now) throw invalid('/expiresAt', 'must be in the future')
  if (end > now + msMax) throw invalid('/expiresAt', `must be at most ${msMax / DAY_MS} days ahead`)
  if (endOfShare({ taskId, expiresAt, createdAt: formatTime(now) }, task) > now) return
  throw new Failure('conflict', {
    message: 'The task has been over for more than an hour: there is nothing to follow.',
  })
}

const assertMayShare = (caller: UserCaller | undefined, kind: keyof typeof PERMISSIONS): void => {
  if (caller === undefined || caller.permissions.has(PERMISSIONS[kind])) return
  throw new Failure('forbidden', { message: `To share a ${kind} takes the permission ${PERMISSIONS[kind]}.` })
}

/** The shared task, if the share is of one. @throws Failure invalid if the caller does not see it */
const sharedTask = async (write: WriteContext): Promise<TaskRow | undefined> => {
  const { services, caller, organizationId, values } = write
  const { tables, resources } = services
  const table = values.taskId === undefined ? TRACKERS_TABLE : TASKS
  const row = await tables.get(table, organizationId, (values.taskId ?? values.trackerId) as string)
  const isSeen = row !== undefined && (caller === undefined || seesRow(caller, row, resources.declarationOf(table)))
  if (!isSeen) throw invalid(`/${kindOf(values)}Id`, NAMES_NOTHING)
  return values.taskId === undefined ? undefined : (row as TaskRow)
}
