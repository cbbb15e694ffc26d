import { chooseFields, FIELDS_PARAMETER, FIELDS_QUERY } from '../../kit/http/list-query.ts'
import { dataAnswer, envelope, STREAM_PAGE_MEMBERS } from '../../kit/http/page-members.ts'
import type { EventLog } from '../../engines/event-log.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { Handled } from '../../kit/commands/handle-command.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { askedBefore, askJob, endJob, type JobPlaces } from '../../kit/jobs/asking.ts'
import { jobDecider, type JobState } from '../../kit/jobs/life.ts'
import { seesJob } from '../../kit/jobs/who-sees.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import type { BacktestQuestion, RunBacktest } from './backtest.ts'
import { packIds, type FoundTransition } from './events.ts'
import { listBacktestsRoute, type ListServices } from './list-backtests.ts'
import { readResult } from './read-result.ts'
import { BACKTEST_BODY, BACKTEST_ID, BODY_EXAMPLE, DECLARED, GEOFENCE_ID, JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'
import { TRANSITION, TRANSITION_EXAMPLE } from '../transitions/schemas.ts'
import type { GroupRules } from '../geofences/events.ts'
import { BACKTEST, backtestShown, type BacktestRow } from './views.ts'

export interface BacktestServices extends Pick<ListServices, 'tables'> {
  log: EventLog
  /** A geofence of the caller's organization. @throws Failure not_found */
  findGeofence(
    caller: UserCaller,
    geofenceId: string,
  ): Promise<Pick<BacktestQuestion, 'geofenceId' | 'geofenceGroupId' | 'geofenceVersion'>>
  runBacktest: RunBacktest
  places: JobPlaces
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
  /** A transition as `GET /geofence-events` shows it. */
  show(transition: FoundTransition): object
}

interface BacktestBody extends GroupRules {
  from: string | number
  to: string | number
  trackerIds?: string[]
}

const LIMIT_DEFAULT = 500
const JOB_PATH = '/geofence/{geofenceId}/backtest/{backtestId}'
const JOB_PARAMS = { geofenceId: GEOFENCE_ID, backtestId: BACKTEST_ID }

/** Back-tests: answered at once, or run as a job whose result is read by its id. */
export const backtestRoutes = (services: BacktestServices): Route[] => [
  askRoute(services),
  listBacktestsRoute(services),
  readRoute(services),
  resultRoute(services),
  deleteRoute(services),
]

const askRoute = (services: BacktestServices): Route =>
  route<never, BacktestBody>({
    ...DECLARED,
    method: 'POST',
    path: '/geofence/{geofenceId}/backtest',
    operationId: 'backtestGeofence',
    summary: 'Ask which transitions a geofence would have made over history',
    params: { geofenceId: GEOFENCE_ID },
    body: BACKTEST_BODY,
    bodyExample: BODY_EXAMPLE,
    answers: {
      200: dataAnswer(
        'The transitions that it would have made, oldest first; none are made.',
        { type: 'array', items: TRANSITION },
        [TRANSITION_EXAMPLE],
      ),
      202: {
        ...dataAnswer(
          'Over 20 million points to read, or over 100,000 transitions: a job. The live channel `job` tells how it goes; `Location` names where it is read. Ten of an organization may wait, one runs at a time; more are 429.',
          JOB_SCHEMA,
          { ...JOB_EXAMPLE, status: 'queued', processed: 0, updatedAt: JOB_EXAMPLE.createdAt, version: 1 },
        ),
        headers: ['Location'],
      },
    },
    handler: async (request) => {
      const { from, to, maxAccuracy, debounce } = request.body
      const trackerIds = request.body.trackerIds?.map((one) => one.toLowerCase())
      const asked = { from: timeOf(from), to: timeOf(to), trackerIds, rules: { maxAccuracy, debounce } }
      if (asked.from > asked.to) throw invalid('/to', 'must not be before from')
      const caller = userOf(request)
      const backtestId = request.ids.next()
      const before = request.ids.isRepeat === true ? await askedBefore(services.log, BACKTEST, backtestId) : undefined
      if (before !== undefined) return accepted(before)
      const question = {
        ...asked,
        ...(await services.findGeofence(caller, request.params.geofenceId)),
        caller,
        signal: request.signal,
      }
      const answer = await services.runBacktest(question)
      return 'transitions' in answer
        ? { body: { data: answer.transitions } }
        : requestJob(services, request, backtestId, question, answer)
    },
  })

const accepted = ({ state, wrote }: Pick<Handled<JobState<BacktestRow>>, 'state' | 'wrote'>): Reply => {
  const row = state.row as BacktestRow
  const location = `/api/v3/geofence/${row.geofenceId}/backtest/${row._id}`
  return { status: 202, body: { data: backtestShown(row) }, headers: { location }, wrote }
}

const requestJob = async (
  services: BacktestServices,
  request: RouteRequest<never, BacktestBody>,
  backtestId: string,
  { caller, geofenceId, geofenceGroupId, geofenceVersion, from, to, trackerIds }: BacktestQuestion,
  { total, rules }: { total: number; rules: GroupRules },
): Promise<Reply> => {
  const { organizationId, userId, hubIds } = caller
  const requested = {
    organizationId,
    geofenceId,
    geofenceGroupId,
    geofenceVersion,
    userId,
    hubIds,
    from,
    to,
    rules,
    total,
    at: request.now,
    ...(trackerIds !== undefined && { trackerIds: packIds(trackerIds) }),
  }
  return accepted(await askJob(services, BACKTEST, request, backtestId, requested))
}

const TRANSITION_MEMBERS = Object.keys(TRANSITION.properties as object)
const JOB_MEMBERS = Object.keys(JOB_SCHEMA.properties as object)

const readRoute = (services: BacktestServices): Route =>
  route<{ fields?: string }>({
    ...DECLARED,
    method: 'GET',
    path: JOB_PATH,
    operationId: 'readBacktest',
    summary: 'Read how a back-test that is a job goes',
    params: JOB_PARAMS,
    query: FIELDS_QUERY,
    answers: {
      200: dataAnswer(
        'The job: for the user who asked for it, and for users who see every hub. Kept as long as runs of automations.',
        JOB_SCHEMA,
        JOB_EXAMPLE,
      ),
    },
    handler: async (request) => {
      const choose = chooseFields(JOB_MEMBERS, request.query.fields)
      return { body: { data: choose(backtestShown(await findJob(services, request))) } }
    },
  })

const resultRoute = (services: BacktestServices): Route =>
  route<{ limit?: number; cursor?: string; fields?: string }>({
    ...DECLARED,
    method: 'GET',
    path: `${JOB_PATH}/transitions`,
    operationId: 'listBacktestTransitions',
    summary: 'Read the transitions that a completed back-test found, oldest first',
    params: JOB_PARAMS,
    query: {
      type: 'object',
      properties: {
        limit: { type: 'integer', minimum: 1, default: LIMIT_DEFAULT, description: 'Transitions of a page.' },
        cursor: { type: 'string', maxLength: 400, description: '`nextCursor` of the page before.' },
        fields: FIELDS_PARAMETER,
      },
      additionalProperties: false,
    },
    answers: {
      200: {
        description:
          'The transitions of trackers that the caller sees now, as a stream; oldest first, as the direct answer has them.',
        schema: envelope({ data: { type: 'array', items: TRANSITION }, ...STREAM_PAGE_MEMBERS }),
        example: { status: true, data: [TRANSITION_EXAMPLE], page: null, limit: LIMIT_DEFAULT, nextCursor: null },
      },
      409: {
        description: 'It is not completed: it waits, runs, or has failed.',
        schema: NOT_COMPLETED,
        example: {
          status: false,
          message: 'The back-test is processing; its result is there when it is completed.',
          code: 'conflict',
        },
      },
    },
    handler: async (request) => {
      const { _id, status, result, error } = await findJob(services, request)
      if (status === 'failed') throw new Failure('conflict', { message: `The back-test has failed: ${error?.message}` })
      if (result === undefined)
        throw new Failure('conflict', {
          message: `The back-test is ${status}; its result is there when it is completed.`,
          retryAfterSeconds: 1,
        })
      const { limit = LIMIT_DEFAULT, cursor, fields } = request.query
      const choose = chooseFields(TRANSITION_MEMBERS, fields)
      const trackerIds = await services.visibleTrackers(userOf(request))
      const stream = await readResult(services.log, {
        backtestId: _id,
        result,
        limit,
        cursor,
        trackerIds,
        show: (transition) => choose({ ...services.show(transition) }),
      })
      return { headers: { 'content-type': 'application/json' }, stream }
    },
  })

const NOT_COMPLETED = {
  type: 'object',
  properties: { status: { const: false }, message: { type: 'string' }, code: { type: 'string' } },
  required: ['status', 'message', 'code'],
}

const deleteRoute = (services: BacktestServices): Route =>
  route({
    ...DECLARED,
    method: 'DELETE',
    path: JOB_PATH,
    operationId: 'deleteBacktest',
    summary: 'Cancel a back-test that is a job, or delete it with its result',
    params: JOB_PARAMS,
    answers: { 200: { description: 'It has ended, and is not there any more.' } },
    handler: async (request) => {
      const job = await findJob(services, request)
      const { wrote } = await endJob(services.log, BACKTEST, request, job, 'delete')
      return { wrote }
    },
  })

/** Current state in the log of a job of the geofence, if the caller may read it. @throws Failure not_found */
const findJob = async (
  { log }: BacktestServices,
  request: Pick<RouteRequest, 'caller' | 'params'>,
): Promise<BacktestRow> => {
  const caller = userOf(request)
  const geofenceId = request.params.geofenceId.toLowerCase()
  const backtestId = request.params.backtestId.toLowerCase()
  const {
    state: { row },
  } = await loadState(log, BACKTEST.stream(backtestId), jobDecider(BACKTEST, backtestId))
  if (
    row === undefined ||
    row.organizationId !== caller.organizationId ||
    row.geofenceId !== geofenceId ||
    !seesJob(caller, row)
  )
    throw new Failure('not_found')
  return row
}

const timeOf = (value: string | number): number => (typeof value === 'number' ? value : Date.parse(value))
