import { pageAnswer } from '../../kit/http/page-members.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import { type ListQuery, type ListShape, listQuerySchema } from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Route, route } from '../../kit/http/route.ts'
import { JOB_AUDIENCE } from '../../kit/jobs/who-sees.ts'
import { DECLARED, GEOFENCE_ID, JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'
import { BACKTESTS, backtestShown, type BacktestRow } from './views.ts'

export interface ListServices {
  tables: Pick<TableStore, 'find'>
  /** @throws Failure not_found */
  findGeofence(caller: UserCaller, geofenceId: string): Promise<{ geofenceId: string }>
}

const LIST: ListShape = {
  table: BACKTESTS,
  members: Object.keys(JOB_SCHEMA.properties as object),
  filters: {
    _id: { type: 'string', format: 'uuid' },
    status: { type: 'string', enum: ['queued', 'processing', 'completed', 'failed'] },
  },
  several: ['_id', 'status'],
  audience: JOB_AUDIENCE,
  sortable: BACKTESTS.range ?? [],
}

/** Jobs of a geofence that the caller may read. */
export const listBacktestsRoute = ({ tables, findGeofence }: ListServices): Route =>
  route<ListQuery>({
    ...DECLARED,
    method: 'GET',
    path: '/geofence/{geofenceId}/backtests',
    operationId: 'listBacktests',
    summary: 'List the back-tests of a geofence that are jobs',
    params: { geofenceId: GEOFENCE_ID },
    query: listQuerySchema(LIST),
    answers: {
      200: pageAnswer(
        'A page of jobs: those that the caller asked for, for users who see every hub all of them.',
        'BacktestPage',
        JOB_SCHEMA,
        JOB_EXAMPLE,
      ),
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { geofenceId } = await findGeofence(caller, request.params.geofenceId)
      const path = `/api/v3/geofence/${geofenceId}/backtests`
      return answerList(LIST, {
        tables,
        caller,
        query: request.query,
        path,
        where: { geofenceId },
        present: (rows) => rows.map((row) => backtestShown(row as BacktestRow)),
      })
    },
  })
