import type { Find, Found } from '../../../engines/table-store.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { Row } from '../../../kernel/table.ts'
import { answerList } from '../../../kit/http/answer-list.ts'
import { idSchema, type ListQuery, type ListShape, listQuerySchema } from '../../../kit/http/list-query.ts'
import { answered, DATE_TIME, pageAnswer, UUID } from '../../../kit/http/page-members.ts'
import { formatTime, metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import type { SessionBegan } from '../events.ts'
import { openMemberships } from '../identity.ts'
import { revocationOf } from './sessions.ts'

const SESSION_SCHEMA = answered(
  'OwnSession',
  {
    _id: UUID,
    jti: { type: 'string', format: 'uuid', description: 'The id of the token, or of the session of a browser.' },
    organizationId: { type: 'string', format: 'uuid', description: 'The organization that it is for.' },
    createdAt: DATE_TIME,
    expiresAt: DATE_TIME,
    lastUsedAt: { ...DATE_TIME, description: 'To some minutes; absent while it was not used.' },
    address: { type: 'string', description: 'From where it was asked for.' },
    isCurrent: { type: 'boolean', description: 'The one of this call.' },
  },
  ['lastUsedAt'],
)

const EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  jti: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  createdAt: '2026-01-01T08:00:00.000Z',
  expiresAt: '2026-01-02T08:00:00.000Z',
  lastUsedAt: '2026-01-01T09:30:00.000Z',
  address: '203.0.113.7',
  isCurrent: true,
}

const LIST: ListShape = {
  table: { name: 'sessions', version: 1 },
  members: Object.keys(SESSION_SCHEMA.properties as object),
  filters: { _id: { type: 'string', format: 'uuid' } },
  several: ['_id'],
  sortable: [],
}

/** Sessions of the caller, in all organizations that their password opens, newest first. */
export const ownSessionRoutes = (context: IdentityContext): Route[] => [
  route<ListQuery>({
    method: 'GET',
    path: '/auth/sessions',
    operationId: 'listOwnSessions',
    summary: 'List the sessions of the calling person, newest first',
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    query: listQuerySchema(LIST),
    answers: {
      200: pageAnswer('Tokens that have not ended.', 'OwnSessionPage', SESSION_SCHEMA, EXAMPLE),
    },
    handler: async (request) => {
      const caller = userOf(request)
      const rows = await sessionsOf(context, request)
      const find = async (_table: string, _scope: string, asked: Find) => pageOf(rows, asked)
      return answerList(LIST, {
        tables: { find: find as never },
        scope: caller.identityId,
        caller,
        query: request.query,
        path: '/api/v3/auth/sessions',
        present: (page) => withUses(context, page),
      })
    },
  }),
  route({
    method: 'DELETE',
    path: '/auth/session/{sessionId}',
    operationId: 'endOwnSession',
    summary: 'End a session of the calling person',
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    params: { sessionId: idSchema('The `jti` of the session.') },
    answers: { 200: { description: 'Its token is revoked.' } },
    handler: async (request) => {
      const { identityId } = userOf(request)
      const live = await ownSessions(context, request)
      const session = live.find(({ jti }) => jti === request.params.sessionId.toLowerCase())
      if (session === undefined) throw new Failure('not_found')
      const origin = { ids: request.ids, metadata: metadataOf(request) }
      return { wrote: await context.sessions.end(identityId, revocationOf(session, formatTime(request.now)), origin) }
    },
  }),
]

/** Users who sign in with a password set by an administrator learn nothing of organizations that it does not open. */
const ownSessions = async (
  context: IdentityContext,
  request: Pick<RouteRequest, 'caller' | 'now'>,
): Promise<SessionBegan[]> => {
  const { identityId, organizationId: current } = userOf(request)
  const [live, person] = await Promise.all([
    context.sessions.live(identityId, request.now),
    context.people.load(identityId),
  ])
  const open = person === undefined ? [] : openMemberships(person.state).map(({ organizationId }) => organizationId)
  return live.filter(({ organizationId }) => organizationId === current || open.includes(organizationId))
}

const sessionsOf = async (context: IdentityContext, request: RouteRequest<ListQuery>): Promise<Row[]> => {
  const { jti } = userOf(request)
  const live = await ownSessions(context, request)
  const current = live.find((one) => one.jti === jti)?.browserId ?? jti
  const shown = live.filter(({ browserId }) => browserId === undefined)
  return shown.map(({ jti, organizationId, address, at, expiresAt }) => ({
    _id: jti,
    jti,
    organizationId,
    createdAt: at,
    expiresAt,
    address,
    isCurrent: jti === current,
  }))
}

/** Newest first unless the oldest are requested; a cursor is the id of the previous row. */
const pageOf = (oldestFirst: readonly Row[], { where, limit, after, offset = 0, sort }: Find): Found => {
  const ids = where?._id as readonly string[] | undefined
  const asked = oldestFirst.filter(({ _id }) => ids?.includes(_id as string) ?? true)
  const rows = sort?.order === 'asc' ? asked : asked.reverse()
  const from = after === undefined ? offset : rows.findIndex(({ _id }) => _id === after) + 1
  const page = rows.slice(from, from + limit)
  const next = from + limit < rows.length ? (page.at(-1)?._id as string) : null
  return { rows: page.map((row) => ({ scope: '', id: row._id as string, row })), total: rows.length, next }
}

const withUses = async ({ uses }: IdentityContext, rows: readonly Row[]): Promise<Row[]> => {
  const times = await uses.lastUsed(rows.map(({ _id }) => _id as string))
  return rows.map((row, i) => (times[i] === undefined ? row : { ...row, lastUsedAt: formatTime(times[i]) }))
}
