import type { Find, Found, TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { nextLink } from './next-link.ts'
import { fingerprintOf, openCursor, sealCursor } from './question-cursor.ts'
import type { Reply } from './route.ts'

export const LIMIT_DEFAULT = 20
export const LIMIT_MAX = 500
/** Rows that `page` may skip; whoever walks further takes the cursor. */
const OFFSET_MAX = 100_000

export interface ListShape {
  table: TableDeclaration
  /** Every member that a row may have: what `fields` may name. */
  members: readonly string[]
  /** Schemas of the equality filters by field. */
  filters: { [field: string]: JsonSchema }
  /** Fields that `sortBy` may name. */
  sortable: readonly string[]
  searchable: boolean
  /** Names the hub or hubs of a row: rows of other hubs do not exist for the caller. */
  hubField?: string
}

export type ListQuery = { [name: string]: unknown } & {
  limit?: number
  page?: number
  cursor?: string
  sortBy?: string
  sortOrder?: 'asc' | 'desc'
  q?: string
  fields?: string
}

export const FIELDS_PARAMETER: JsonSchema = {
  type: 'string',
  maxLength: 2000,
  description: 'Names of the fields to answer, separated by commas; `_id` always is.',
}

export const listQuerySchema = (shape: ListShape): JsonSchema => ({
  type: 'object',
  properties: {
    ...shape.filters,
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
    page: { type: 'integer', minimum: 1, maximum: OFFSET_MAX + 1, description: 'From 1; not together with `cursor`.' },
    cursor: { type: 'string', maxLength: 4000, description: '`nextCursor` of the page before.' },
    ...(shape.sortable.length > 0 ? { sortBy: { type: 'string', enum: [...shape.sortable] } } : {}),
    sortOrder: {
      type: 'string',
      enum: ['asc', 'desc'],
      default: 'asc',
      description: 'Without `sortBy` of the time of creation.',
    },
    ...(shape.searchable
      ? { q: { type: 'string', minLength: 1, maxLength: 200, description: 'Beginnings of words that must all occur.' } }
      : {}),
    fields: FIELDS_PARAMETER,
  },
  additionalProperties: false,
})

export interface ListRequest {
  tables: Pick<TableStore, 'find'>
  scope: string
  caller: UserCaller
  query: ListQuery
  /** Path below the root of the server, for the Link header: `/api/v3/hubs`. */
  path: string
  present?: (row: Row) => Row
  /** Conditions beside those of the query. */
  where?: Find['where']
  range?: Find['range']
  /** The order of a list that cannot be sorted otherwise. */
  sort?: Find['sort']
}

/** Answers a page of a table as section 1 of the API's conventions says. */
export const answerList = async (shape: ListShape, request: ListRequest): Promise<Reply> => {
  const { query } = request
  const limit = query.limit ?? LIMIT_DEFAULT
  const choose = chooseFields(shape.members, query.fields)
  const where = whereOf(shape, request)
  if (query.page !== undefined && query.cursor !== undefined)
    throw invalid('/page', 'must not be sent together with cursor')
  const page = query.cursor === undefined ? (query.page ?? 1) : null
  if (where === NOTHING) return listReply(request, { rows: [], total: 0, next: null }, page, limit, choose, '')
  const question: Find = { where, range: request.range, text: query.q, limit, total: true }
  const sortBy =
    query.sortBy ?? (query.sortOrder === 'desc' && shape.sortable.includes('createdAt') ? 'createdAt' : undefined)
  if (request.sort !== undefined) question.sort = request.sort
  else if (sortBy !== undefined) question.sort = { field: sortBy, order: query.sortOrder ?? 'asc' }
  const fingerprint = fingerprintOf([shape.table.name, request.scope, askedOf(query), request.range])
  if (query.cursor !== undefined) question.after = openCursor(query.cursor, fingerprint)
  else if (query.page !== undefined) question.offset = offsetOf(query.page, limit)
  return listReply(
    request,
    await request.tables.find(shape.table.name, request.scope, question),
    page,
    limit,
    choose,
    fingerprint,
  )
}

/** Picks what `fields` names, and the id; @throws Failure invalid for a name that no row has. */
export const chooseFields = (
  members: readonly string[],
  fields: string | undefined,
  id = '_id',
): ((row: Row) => Row) => {
  const chosen = chosenFields(members, fields, id)
  if (chosen === undefined) return (row) => row
  return (row) => Object.fromEntries(chosen.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]))
}

/** The names in `fields` and the id, undefined where all are meant; @throws Failure invalid for a name that no row has. */
export const chosenFields = (
  members: readonly string[],
  fields: string | undefined,
  id = '_id',
): string[] | undefined => {
  if (fields === undefined) return undefined
  const names = fields.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !members.includes(name))
  if (unknown !== undefined) throw invalid('/fields', `names an unknown field ${JSON.stringify(unknown)}`)
  return [...new Set([id, ...names])]
}

/** Whether the caller may see a row of this shape. */
export const seesRow = (caller: UserCaller, row: Row, hubField: string | undefined): boolean =>
  hubField === undefined || seesHubs(caller, hubsOf(row, hubField))

export const hubsOf = (row: Row, hubField: string): string[] => {
  const value = row[hubField]
  if (Array.isArray(value)) return value as string[]
  return typeof value === 'string' ? [value] : []
}

/** What was asked for, not what the caller may see: that can change while a list is walked. */
const askedOf = ({
  limit: _limit,
  page: _page,
  cursor: _cursor,
  fields: _fields,
  ...asked
}: ListQuery): [string, unknown][] =>
  Object.entries(asked)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))

const NOTHING = Symbol('no row can match')

const whereOf = (shape: ListShape, { caller, query, where }: ListRequest): Find['where'] | typeof NOTHING => {
  const conditions: NonNullable<Find['where']> = { ...where }
  for (const name of Object.keys(shape.filters)) {
    if (query[name] !== undefined) conditions[name] = query[name] as string
  }
  if (shape.hubField === undefined || caller.hubIds === 'all') return conditions
  const own = caller.hubIds
  const asked = conditions[shape.hubField]
  const hubIds =
    asked === undefined
      ? own
      : (Array.isArray(asked) ? asked : [asked]).filter((hubId) => own.includes(hubId as string))
  if (hubIds.length === 0) return NOTHING
  return { ...conditions, [shape.hubField]: hubIds }
}

const offsetOf = (page: number, limit: number): number => {
  const offset = (page - 1) * limit
  if (offset > OFFSET_MAX) throw invalid('/page', `must not skip more than ${OFFSET_MAX} rows; walk with cursor`)
  return offset
}

const listReply = (
  request: ListRequest,
  found: Found,
  page: number | null,
  limit: number,
  choose: (row: Row) => Row,
  fingerprint: string,
): Reply => {
  const nextCursor = found.next === null ? null : sealCursor(found.next, fingerprint)
  const data = found.rows.map(({ row }) => choose(request.present === undefined ? row : request.present(row)))
  const body = { data, total: found.total, page, limit, nextCursor }
  return nextCursor === null ? { body } : { body, headers: { link: nextLink(request.path, request.query, nextCursor) } }
}
