import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { ListConditions } from '../http/answer-list.ts'
import { idSchema, shownRow, type ListQuery, type ListShape } from '../http/list-query.ts'
import { userOf } from '../http/request-context.ts'
import type { Reply, Route, RouteRequest } from '../http/route.ts'
import { article, capital, idParameter, pathsOf, rowReply, words } from './answers.ts'
import type { ResourceAction, ResourceDeclaration, ResourceServices } from './declaration.ts'
import { presented, type Presented } from './show.ts'
import type { ResourceWrites, Written } from './writes.ts'

/** Parts that a feature supplies where the declaration cannot express them. */
export interface RouteParts {
  /** Replaces the kit's: one write is several streams, or events of another form. */
  writes?: ResourceWrites
  /** Replaces the declaration's, where it needs more than the services of resources. */
  present?: ResourceDeclaration['present']
  /** Beside those of the declaration, for the same reason. */
  actions?: readonly ResourceAction[]
  /** Conditions of a list that take more than the query's values and an index. */
  conditions?(query: ListQuery, caller: UserCaller): Promise<ListConditions>
  /** Query parameters of the read beside `fields`, and the row where they ask for another one than the table's. */
  read?: { query: { [name: string]: JsonSchema }; row(request: RouteRequest, id: string): Promise<Row | undefined> }
  /** Field that names the record's user: users without the permission to view can read their own. */
  own?: string
  /** Replaces the declaration's. */
  settles?: ResourceDeclaration['settles']
}

/** Everything that the routes of one resource share. */
export interface Served extends RouteParts {
  declaration: ResourceDeclaration
  services: ResourceServices
  writes: ResourceWrites
  shape: ListShape
}

/** The reply of a write: the row as a read shows it, with values shown once. */
export const written = async (
  served: Served,
  request: Presented,
  { row, wrote, told }: Written,
  status = 200,
): Promise<Reply> => {
  const [whole] = await presented(served, request, [row], undefined)
  const data = shownRow(served.shape, undefined, userOf(request))(whole)
  const reply = rowReply({ ...data, ...told }, row, wrote, status)
  return told === undefined ? reply : { ...reply, secret: true }
}

export const one = (
  declaration: ResourceDeclaration,
  method: Route['method'],
  verb: string,
  permission: string,
  below = '',
): Omit<Route, 'handler' | 'answers'> => ({
  method,
  path: `${pathsOf(declaration).one}/{${idParameter(declaration)}}${below}`,
  operationId: `${verb}${capital(declaration.noun)}`,
  summary: `${capital(verb)} ${article(declaration.noun)}`,
  tag: declaration.tag,
  access: { permission },
  params: { [idParameter(declaration)]: idSchema(`The id of the ${words(declaration.noun)}.`) },
})
