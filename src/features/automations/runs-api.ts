import type { Find, TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { answerList, NO_ROWS } from '../../kit/http/answer-list.ts'
import {
  chooseFields,
  FIELDS_QUERY,
  idSchema,
  listQuerySchema,
  type ListQuery,
  type ListShape,
  severalOf,
} from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { dataAnswer, envelope, uncountedPageAnswer, UUID } from '../../kit/http/page-members.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { route, type Route } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { boundsSchema, timeBounds } from '../../kit/http/time-parameter.ts'
import { ROUTING_RESULTS, type RoutingRow } from '../routing/views.ts'
import { seesTask, TASKS, type TaskRow } from '../tasks/views.ts'
import { askRetry } from './automation.ts'
import { EVENT_DATA_TYPES, type Subject } from './events.ts'
import { showRun } from './run-shown.ts'
import { RUN, RUN_EXAMPLE } from './schemas.ts'
import { AUTOMATION_RUNS, RECORDS_AUDIENCE, type RunRow } from './views.ts'

export interface RunsApiOptions extends Pick<Services, 'log' | 'keyring' | 'tables'> {
  /** Runs as the history lists them; waits for a run that it does not have yet. */
  listed: Pick<TableStore, 'find' | 'get'>
  /** Trackers visible to the caller; runs of others are hidden. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
}

const TAG = 'Automations'
const PARAMS = { runId: idSchema('The id of the run.') }

const SHAPE: ListShape = {
  table: AUTOMATION_RUNS,
  members: [
    '_id',
    'organizationId',
    'automationId',
    'event',
    'at',
    'trackerId',
    'taskId',
    'dataId',
    'routingResultId',
    'geofenceId',
    'geofenceGroupId',
    'transitionId',
    'tripId',
    'point',
    'sequence',
    'status',
    'reason',
    'attempts',
    'nextAttemptAt',
    'createdAt',
  ],
  filters: {
    _id: { ...UUID, description: 'These runs.' },
    automationId: { ...UUID, description: 'Runs of this automation.' },
    status: { type: 'string', enum: ['pending', 'succeeded', 'dead', 'skipped'] },
    event: { type: 'string', enum: Object.keys(EVENT_DATA_TYPES), description: 'Runs that such an event led to.' },
  },
  several: ['_id', 'automationId', 'status', 'event'],
  sortable: [],
  order: { field: 'createdAt', order: 'desc' },
}

export const automationRunRoutes = (options: RunsApiOptions): Route[] => [
  logRoute(options),
  readRoute(options),
  retryRoute(options),
]

const SUBJECT_QUERY = {
  trackerId: 'tracker',
  taskId: 'task',
  dataId: 'record',
  routingResultId: 'routingResult',
} as const

type LogQuery = ListQuery & { from?: string; to?: string } & {
  [parameter in keyof typeof SUBJECT_QUERY]?: readonly string[]
}

/**
 * Runs visible to the caller: those of the requested subject, or those of its trackers, tasks of its hubs, and records.
 * Undefined if there are none.
 */
const shownTo = async (
  options: RunsApiOptions,
  caller: UserCaller,
  query: LogQuery,
): Promise<Find['where'] | undefined> => {
  const asked = Object.entries(SUBJECT_QUERY).flatMap(([parameter, type]) => {
    const ids = query[parameter as keyof typeof SUBJECT_QUERY]
    return ids === undefined ? [] : [ids.map((id) => ({ type, id: id.toLowerCase() }))]
  })
  if (asked.length > 0) {
    const [first, ...others] = asked
    const all = first.filter(({ id }) => others.every((subjects) => subjects.some((one) => one.id === id)))
    const seen = await seenBy(options, caller, all)
    const subjectId = all.flatMap(({ id }, i) => (seen[i] ? [id] : []))
    return subjectId.length > 0 ? { subjectId } : undefined
  }
  if (caller.hubIds === 'all') return {}
  const trackerIds = await options.visibleTrackers(caller)
  const audience = [
    ...(trackerIds === 'all' ? [] : trackerIds),
    ...caller.hubIds,
    ...(caller.permissions.has('view/data') ? [RECORDS_AUDIENCE] : []),
  ]
  return audience.length === 0 ? undefined : { audience }
}

/** Whether the caller sees the current subjects of runs. Subjects without a hub, or gone, require all hubs. */
const seenBy = async (
  { tables, visibleTrackers }: RunsApiOptions,
  caller: UserCaller,
  subjects: readonly Subject[],
): Promise<boolean[]> => {
  if (caller.hubIds === 'all') return subjects.map(() => true)
  const idsOf = (type: Subject['type']): string[] => subjects.flatMap((one) => (one.type === type ? [one.id] : []))
  const taskIds = [...new Set(idsOf('task'))]
  const tasks = taskIds.length === 0 ? [] : await tables.getMany<TaskRow>(TASKS, caller.organizationId, taskIds)
  const seen = new Set(
    taskIds.filter(
      (_, i) => tasks[i] !== undefined && seesHubs(caller, [tasks[i].hubId]) && seesTask(caller, tasks[i]),
    ),
  )
  const resultIds = [...new Set(idsOf('routingResult'))]
  const results =
    resultIds.length === 0 ? [] : await tables.getMany<RoutingRow>(ROUTING_RESULTS, caller.organizationId, resultIds)
  for (const [i, id] of resultIds.entries()) if (results[i] && seesHubs(caller, [results[i].hubId])) seen.add(id)
  const trackerIds = idsOf('tracker').length === 0 ? [] : await visibleTrackers(caller)
  const trackers = trackerIds === 'all' ? undefined : new Set(trackerIds)
  return subjects.map(({ type, id }) => {
    if (type === 'record') return caller.permissions.has('view/data')
    if (type === 'task') return seen.has(id)
    if (type === 'routingResult') return caller.permissions.has('view/routing') && seen.has(id)
    return type === 'tracker' && trackers?.has(id) !== false
  })
}

const shownRuns = async (options: RunsApiOptions, caller: UserCaller, runs: readonly RunRow[]): Promise<Row[]> => {
  const subjects = runs.map(({ trigger }) => trigger.subject)
  const seen = await seenBy(options, caller, subjects)
  return runs.filter((_, i) => seen[i]).map((run) => showRun(options.keyring, run))
}

/** Marks the subject as no filter: no query asks for runs without one. */
const ONE_SUBJECT = { isAlwaysThere: true }

const LOG_QUERY = listQuerySchema(SHAPE, {
  trackerId: severalOf('trackerId', { ...UUID, description: 'Runs for this tracker.' }, ONE_SUBJECT),
  taskId: severalOf('taskId', { ...UUID, description: 'Runs for this task.' }, ONE_SUBJECT),
  routingResultId: severalOf('routingResultId', { ...UUID, description: 'Runs for this routing result.' }, ONE_SUBJECT),
  dataId: severalOf('dataId', { ...UUID, description: 'Runs for this record.' }, ONE_SUBJECT),
  ...boundsSchema('Runs made'),
})

const logRoute = (options: RunsApiOptions): Route => {
  const { listed } = options
  return route<LogQuery>({
    method: 'GET',
    path: '/automation-log',
    operationId: 'listAutomationLog',
    summary: 'The runs of automations with their attempts, newest first; kept 30 days',
    description:
      'A user who does not see all hubs sees runs about their trackers, about records, and about tasks that are and were in their hubs; those of a task that came from another hub by `taskId`. A page may have fewer rows than `limit` although there is a next one.',
    tag: TAG,
    access: { permission: 'view/automation' },
    query: LOG_QUERY,
    answers: {
      200: uncountedPageAnswer('A page of runs.', 'AutomationRunPage', RUN, RUN_EXAMPLE),
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { query } = request
      const range: Find['range'] = { field: 'createdAt', ...timeBounds(query) }
      const where = await shownTo(options, caller, query)
      return answerList(SHAPE, {
        tables: where === undefined ? NO_ROWS : listed,
        where: where ?? {},
        isCounted: false,
        caller,
        query,
        path: '/api/v3/automation-log',
        range,
        present: (rows) => shownRuns(options, caller, rows as readonly RunRow[]),
      })
    },
  })
}

const readRoute = (options: RunsApiOptions): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/automation-log/{runId}',
    operationId: 'readAutomationRun',
    summary: 'One run of an automation with its attempts',
    tag: TAG,
    access: { permission: 'view/automation' },
    params: PARAMS,
    query: FIELDS_QUERY,
    answers: { 200: dataAnswer('The run.', RUN, RUN_EXAMPLE) },
    handler: async (request) => {
      const row = await findRun(options, userOf(request), request.params.runId)
      return { body: { data: chooseFields(SHAPE.members, request.query.fields)(showRun(options.keyring, row)) } }
    },
  })

const retryRoute = (options: RunsApiOptions): Route =>
  route({
    method: 'POST',
    path: '/automation-log/{runId}/retry',
    operationId: 'retryAutomationRun',
    summary: 'Attempt a run that has ended once more, under the same webhook-id',
    tag: TAG,
    access: { permission: 'edit/automation' },
    params: PARAMS,
    answers: { 200: { description: 'It will be attempted.', schema: envelope({ data: RUN }) } },
    handler: async (request) => {
      const origin = { ...originOf(request), caller: userOf(request) }
      const row = await findRun(options, origin.caller, request.params.runId)
      const wrote = await askRetry(options.log, origin, row)
      return { body: { data: showRun(options.keyring, { ...row, status: 'pending', reason: undefined }) }, wrote }
    },
  })

/** @throws Failure not_found, also for a run whose subject the caller does not see. */
const findRun = async (options: RunsApiOptions, caller: UserCaller, runId: string): Promise<RunRow> => {
  const row = await options.listed.get<RunRow>(AUTOMATION_RUNS.name, caller.organizationId, runId.toLowerCase())
  const [isSeen] = row === undefined ? [false] : await seenBy(options, caller, [row.trigger.subject])
  if (row === undefined || !isSeen) throw new Failure('not_found')
  return row
}
