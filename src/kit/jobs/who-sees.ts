import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import type { Audience } from '../http/list-query.ts'
import { userOf } from '../http/request-context.ts'
import type { RouteRequest } from '../http/route.ts'
import type { JobRow } from './job.ts'

type Seer = Pick<UserCaller, 'hubIds' | 'userId'>

/** Jobs that quote or count what others may not see: for the user who asked, and for users who see every hub. */
export const seesJob = ({ hubIds, userId }: Seer, job: { userId: string }): boolean =>
  hubIds === 'all' || job.userId === userId

/** The same for a list. */
export const JOB_AUDIENCE: Audience = {
  field: 'userId',
  keys: ({ hubIds, userId }: Seer) => (hubIds === 'all' ? undefined : [userId]),
}

/** A job that the caller may see. @throws Failure not_found */
export const findJob = async <Job extends JobRow & { userId: string }>(
  tables: Pick<TableStore, 'get'>,
  table: TableDeclaration,
  { caller }: Pick<RouteRequest, 'caller'>,
  id: string,
): Promise<Job> => {
  const user = userOf({ caller })
  const row = await tables.get<Job>(table.name, user.organizationId, id.toLowerCase())
  if (row === undefined || !seesJob(user, row)) throw new Failure('not_found')
  return row
}
