import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Row } from '../../kernel/table.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import { listQuerySchema, type ListQuery, type ListShape, wantsField } from '../../kit/http/list-query.ts'
import { answered, DATE_TIME, uncountedPageAnswer, UUID } from '../../kit/http/page-members.ts'
import { formatTime, userOf } from '../../kit/http/request-context.ts'
import { type Route, route } from '../../kit/http/route.ts'
import { boundsSchema, timeBounds } from '../../kit/http/time-parameter.ts'
import type { ResourceDeclaration } from '../../kit/resource/declaration.ts'
import { type Logged, type LoggedServices, readLogged } from './changes.ts'
import { AUDIT_LOG, type AuditRow, nounsShown } from './views.ts'

export interface AuditServices extends LoggedServices {
  /** Audit log as the history lists it. */
  listed: Pick<TableStore, 'find'>
  /** Resolves when the list has everything logged before the call, or after a time limit. */
  caughtUp(): Promise<unknown>
  /** All resources: they declare which fields may be shown, and to whom. */
  resources: readonly ResourceDeclaration[]
}

const READS_AT_ONCE = 16

const ENTRY = answered(
  'AuditEntry',
  {
    _id: UUID,
    at: DATE_TIME,
    actor: answered('AuditActor', {
      type: { type: 'string', enum: ['user', 'service', 'automation', 'schedule', 'import'] },
      id: {
        type: 'string',
        description: 'Of the user, service account, automation, …; of the service itself the name of its part.',
      },
    }),
    action: { type: 'string', description: '`created`, `changed`, `deleted`, or what else was done.' },
    noun: {
      type: 'string',
      description:
        'The kind of thing: `hub`, `role`, …; `session` for sign-ins, `identity` for passwords and addresses.',
    },
    resourceId: { type: 'string' },
    changes: {
      type: 'object',
      description:
        'Fields with their values before and after, as far as your role shows them. Without secrets; a value of over 4,096 characters is `{"omittedCharacters": n}`. Empty for what was erased.',
      additionalProperties: { type: 'object', properties: { from: {}, to: {} }, additionalProperties: false },
    },
    address: { type: 'string', description: 'Where the request came from.' },
  },
  ['address'],
)

const EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
  at: '2026-01-01T08:00:00.000Z',
  actor: { type: 'user', id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' },
  action: 'changed',
  noun: 'hub',
  resourceId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  changes: { name: { from: 'North', to: 'North yard' } },
  address: '203.0.113.7',
}

/** Ids and names contain no commas. */
const NAME = { type: 'string', minLength: 1, 'x-commas': true }

/** Kinds are an enum: a filter by an unknown name would never find anything. */
const shapeOf = (nouns: readonly string[]): ListShape => ({
  table: AUDIT_LOG,
  members: Object.keys(ENTRY.properties as object),
  filters: {
    _id: { ...UUID, description: 'These entries.' },
    actorId: { ...NAME, maxLength: 100, description: 'What this user, automation, … did.' },
    noun: { type: 'string', enum: nouns, description: 'What happened to things of this kind.' },
    resourceId: { ...NAME, maxLength: 100, description: 'What happened to this one.' },
    action: { ...NAME, maxLength: 60, description: 'Such as `created`, `changed`, `deleted`.' },
  },
  several: ['_id', 'actorId', 'noun', 'resourceId', 'action'],
  sortable: [],
  order: { field: 'at', order: 'desc' },
  hubField: 'hubIds',
})

type AuditQuery = ListQuery & { from?: string; to?: string; actorId?: string[]; resourceId?: string[] }

export const auditRoute = (services: AuditServices): Route => {
  const shape = shapeOf(nounsShown(services.resources))
  return route<AuditQuery>({
    method: 'GET',
    path: '/audit-log',
    operationId: 'listAuditLog',
    summary: 'List who changed what, newest first',
    description:
      'For as long as the log has it. A user who does not see all hubs sees the entries about their hubs, and none that belong to no hub.',
    tag: 'Audit log',
    access: { permission: 'view/audit-log' },
    query: listQuerySchema(shape, boundsSchema('What was done')),
    answers: {
      200: uncountedPageAnswer('A page of the audit log.', 'AuditPage', ENTRY, EXAMPLE),
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { query } = request
      const range = { field: 'at', ...timeBounds(query) }
      if (query.cursor === undefined) await services.caughtUp()
      return answerList(shape, {
        tables: services.listed,
        isCounted: false,
        caller,
        query: lowerIds(query),
        path: '/api/v3/audit-log',
        range,
        present: (rows) => shown(services, caller, rows as AuditRow[], query.fields),
      })
    },
  })
}

/** Ids compare without case; names of parts of the service are in lower case. */
const lowerIds = ({ actorId, resourceId, ...query }: AuditQuery): AuditQuery => ({
  ...query,
  ...(actorId !== undefined && { actorId: actorId.map((id) => id.toLowerCase()) }),
  ...(resourceId !== undefined && { resourceId: resourceId.map((id) => id.toLowerCase()) }),
})

/** Entries with their logged content; the log is read only if the content is wanted. */
const shown = async (
  services: AuditServices,
  caller: UserCaller,
  rows: readonly AuditRow[],
  fields: string | undefined,
): Promise<Row[]> => {
  const logged = new Map<string, Logged>()
  const isRead = ['changes', 'address'].some((member) => wantsField(fields, member))
  await severalAtOnce(isRead ? rows : [], READS_AT_ONCE, async (row) => {
    const declaration = services.resources.find(({ noun }) => noun === row.noun)
    logged.set(row._id, await readLogged(services, caller, declaration, row))
  })
  return rows.map(({ _id, at, actorType, actorId, action, noun, resourceId }) => ({
    _id,
    at: formatTime(at),
    actor: { type: actorType, id: actorId },
    action,
    noun,
    resourceId,
    ...logged.get(_id),
  }))
}
