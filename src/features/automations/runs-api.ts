import type { Find, TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import {
  chooseFields,
  FIELDS_QUERY,
  idSchema,
  listQuerySchema,
  type ListQuery,
  type ListShape,
} from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { envelope, PAGE_MEMBERS } from '../../kit/http/page-members.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { route, type Reply, type Route } from '../../kit/http/route.ts'
import type { Services } from '../../kit/services.ts'
import { timeBounds } from '../../kit/http/time-parameter.ts'
import { askRetry } from './automation.ts'
import { showRun } from './run-shown.ts'
import { RUN, RUN_EXAMPLE } from './schemas.ts'
import { AUTOMATION_RUNS, type RunRow } from './views.ts'

export interface RunsApiOptions extends Pick<Services, 'log' | 'keyring'> {
  /** Runs as the history lists them; a run that it does not have yet is waited for. */
  listed: Pick<TableStore, 'find' | 'get'>
  /** The trackers that a caller may see: runs of others do not exist for it. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
}

const TAG = 'Automations'
const PARAMS = { runId: idSchema('The id of the run.') }
const TIME: JsonSchema = { type: 'string', maxLength: 40, description: 'RFC 3339 or epoch milliseconds.' }

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
    automationId: { type: 'string', maxLength: 100, description: 'Runs of this automation.' },
    status: { type: 'string', enum: ['pending', 'succeeded', 'dead', 'skipped'] },
  },
  sortable: [],
  searchable: false,
}

/** The log of runs, one of them, and another attempt of one that has ended. */
export const automationRunRoutes = (options: RunsApiOptions): Route[] => [
  logRoute(options),
  readRoute(options),
  retryRoute(options),
]

type LogQuery = ListQuery & { automationId?: string; trackerId?: string; from?: string; to?: string }

const logRoute = ({ listed, keyring, visibleTrackers }: RunsApiOptions): Route => {
  const schema = listQuerySchema(SHAPE)
  const { sortOrder: _sortOrder, page: _page, ...properties } = schema.properties as { [name: string]: JsonSchema }
  return route<LogQuery>({
    method: 'GET',
    path: '/automation-log',
    operationId: 'listAutomationLog',
    summary: 'The runs of automations with their attempts, newest first; kept 30 days',
    tag: TAG,
    access: { permission: 'view/automation' },
    query: {
      ...schema,
      properties: {
        ...properties,
        page: _page,
        trackerId: { type: 'string', maxLength: 100, description: 'Runs for this tracker.' },
        from: { ...TIME, description: `Runs made then or later: ${TIME.description}` },
        to: { ...TIME, description: `Runs made then or earlier: ${TIME.description}` },
      },
    },
    answers: {
      200: {
        description: 'A page of runs.',
        schema: {
          title: 'AutomationRunPage',
          ...envelope({ data: { type: 'array', items: RUN }, ...PAGE_MEMBERS }),
        },
        example: { status: true, data: [RUN_EXAMPLE], page: 1, limit: 20, nextCursor: null },
      },
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { query } = request
      const range: Find['range'] = { field: 'createdAt', ...timeBounds(query) }
      const [asked, automationId] = [query.trackerId?.toLowerCase(), query.automationId?.toLowerCase()]
      const visible = await visibleTrackers(caller)
      const subjectIds = asked === undefined ? visible : visible === 'all' || visible.includes(asked) ? [asked] : []
      const reply = await answerList(SHAPE, {
        tables:
          subjectIds.length === 0
            ? NO_ROWS
            : { find: (table, scope, question) => listed.find(table, scope, { ...question, total: false }) },
        ...(subjectIds !== 'all' && { where: { subjectId: subjectIds } }),
        scope: caller.organizationId,
        caller,
        query: { ...query, trackerId: asked, automationId },
        path: '/api/v3/automation-log',
        range,
        sort: { field: 'createdAt', order: 'desc' },
        present: (rows) => rows.map((row) => showRun(keyring, row as RunRow)),
      })
      return withoutTotal(reply)
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
    answers: {
      200: { description: 'The run.', schema: envelope({ data: RUN }), example: { status: true, data: RUN_EXAMPLE } },
    },
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
      if (row.status === 'pending')
        throw new Failure('conflict', { message: 'The run has not ended: it will be attempted anyway.' })
      const wrote = await askRetry(options.log, origin, row)
      return { body: { data: showRun(options.keyring, { ...row, status: 'pending', reason: undefined }) }, wrote }
    },
  })

/** @throws Failure not_found, also for a run of a tracker that the caller does not see. */
const findRun = async (
  { listed, visibleTrackers }: RunsApiOptions,
  caller: UserCaller,
  runId: string,
): Promise<RunRow> => {
  const row = await listed.get<RunRow>(AUTOMATION_RUNS.name, caller.organizationId, runId.toLowerCase())
  const visible = row === undefined ? [] : await visibleTrackers(caller)
  if (row === undefined || (visible !== 'all' && !visible.includes(row.subjectId))) throw new Failure('not_found')
  return row
}

const NO_ROWS: Pick<TableStore, 'find'> = { find: async () => ({ rows: [], next: null }) }

const withoutTotal = (reply: Reply): Reply => {
  const { total: _total, ...body } = reply.body ?? {}
  return { ...reply, body }
}
