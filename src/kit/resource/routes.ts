import { Failure, invalid } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { Services } from '../services.ts'
import { PAGE_MEMBERS } from '../http/page-members.ts'
import {
  answerList,
  chooseFields,
  FIELDS_PARAMETER,
  listQuerySchema,
  seesRow,
  type ListQuery,
  type ListShape,
} from '../http/list-query.ts'
import { metadataOf, userOf } from '../http/request-context.ts'
import { amendSchema, createSchema, replaceSchema, rowSchema, type ResourceDeclaration } from './declaration.ts'
import { tableOf } from './rows.ts'
import { article, capital, exampleRow, idParameter, pathsOf, words } from './names.ts'
import type { ResourceWriter, WriteOrigin } from './write.ts'
import { route, type Answer, type Reply, type Route, type RouteRequest } from '../http/route.ts'

type ReadServices = Pick<Services, 'tables'>

/** What a list of this resource takes and answers. */
export const listShape = (declaration: ResourceDeclaration): ListShape => {
  const table = tableOf(declaration)
  const schemas = (rowSchema(declaration).properties ?? {}) as { [field: string]: JsonSchema }
  const filters = Object.fromEntries(
    (table.equality ?? []).map((name) => [name, filterSchema(schemas[name] ?? { type: 'string' })]),
  )
  return {
    table,
    members: Object.keys(schemas),
    filters,
    sortable: table.range ?? [],
    searchable: (table.text ?? []).length > 0,
    hubField: declaration.hubField,
  }
}

export const listRoute = (declaration: ResourceDeclaration, services: ReadServices): Route => {
  const shape = listShape(declaration)
  const path = pathsOf(declaration).many
  return route<ListQuery>({
    method: 'GET',
    path,
    operationId: `list${capital(declaration.plural)}`,
    summary: `List ${words(declaration.plural)}`,
    tag: declaration.tag,
    access: { permission: declaration.permissions.view },
    query: listQuerySchema(shape),
    answers: { 200: listAnswer(declaration) },
    handler: (request) => {
      const caller = userOf(request)
      const present = presenter(declaration, request)
      return answerList(shape, {
        tables: services.tables,
        scope: caller.organizationId,
        caller,
        query: request.query,
        path: `/api/v3${path}`,
        present,
      })
    },
  })
}

export const readRoute = (declaration: ResourceDeclaration, services: ReadServices): Route =>
  route<{ fields?: string }>({
    ...one(declaration, 'GET', 'read', declaration.permissions.view),
    query: { type: 'object', properties: { fields: FIELDS_PARAMETER }, additionalProperties: false },
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const row = await findRow(declaration, services, request, request.params[idParameter(declaration)])
      return rowReply(
        chooseFields(listShape(declaration).members, request.query.fields)(presenter(declaration, request)(row)),
        row,
      )
    },
  })

/** A row of the caller's organization that the caller sees. @throws Failure not_found */
export const findRow = async (
  declaration: ResourceDeclaration,
  services: ReadServices,
  request: Pick<RouteRequest, 'caller'>,
  id: string,
): Promise<Row> => {
  const caller = userOf(request)
  const row = await services.tables.get(declaration.plural, caller.organizationId, id)
  if (row === undefined || !seesRow(caller, row, declaration.hubField)) throw new Failure('not_found')
  return row
}

export const createRoute = (declaration: ResourceDeclaration, writer: ResourceWriter): Route =>
  route<object, JsonObject>({
    method: 'POST',
    path: pathsOf(declaration).one,
    operationId: `create${capital(declaration.noun)}`,
    summary: `Create ${article(declaration.noun)}`,
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    body: createSchema(declaration),
    bodyExample: declaration.example,
    answers: { 201: rowAnswer(declaration) },
    handler: async (request) => {
      const { row, wrote } = await writer.create(originOf(request), request.body)
      return rowReply(presenter(declaration, request)(row), row, wrote, 201)
    },
  })

export const replaceRoute = (declaration: ResourceDeclaration, writer: ResourceWriter): Route =>
  changeRoute(declaration, writer, 'PUT', 'replace', replaceSchema(declaration))

export const amendRoute = (declaration: ResourceDeclaration, writer: ResourceWriter): Route =>
  changeRoute(declaration, writer, 'PATCH', 'amend', amendSchema(declaration))

export const deleteRoute = (declaration: ResourceDeclaration, writer: ResourceWriter): Route =>
  route({
    ...one(declaration, 'DELETE', 'delete', declaration.permissions.edit),
    answers: { 200: { description: 'It is deleted.' } },
    handler: async (request) => {
      const { wrote } = await writer.delete(
        originOf(request),
        request.params[idParameter(declaration)],
        versionOf(request, undefined),
      )
      return { wrote }
    },
  })

/** The version that the client says it saw: of the body, or of If-Match. @throws Failure invalid */
export const versionOf = (request: Pick<RouteRequest, 'headers'>, body: JsonObject | undefined): number | undefined => {
  if (typeof body?.version === 'number') return body.version
  const header = request.headers.get('if-match')
  if (header === undefined || header.trim() === '*') return undefined
  const found = /^(?:W\/)?"?(\d{1,15})"?$/.exec(header.trim())
  if (found === null) throw invalid('/If-Match', 'must be a version, as the ETag of a read answers it')
  return Number(found[1])
}

/** Who writes, from a request. */
export const originOf = (
  request: Pick<RouteRequest, 'caller' | 'now' | 'ids' | 'correlationId' | 'traceparent'>,
): WriteOrigin => {
  const caller = userOf(request)
  return {
    organizationId: caller.organizationId,
    caller,
    now: request.now,
    ids: request.ids,
    metadata: metadataOf(request),
  }
}

/** The reply of a read or write: the row in `data`, its version as ETag. */
export const rowReply = (data: Row, row: Row, wrote?: Reply['wrote'], status = 200): Reply => ({
  status,
  body: { data },
  headers: { etag: `"${row.version}"` },
  wrote,
})

const presenter =
  (declaration: ResourceDeclaration, request: Pick<RouteRequest, 'caller' | 'now'>) =>
  (row: Row): Row =>
    declaration.present === undefined ? row : declaration.present(row, { caller: userOf(request), now: request.now })

export const rowAnswer = (declaration: ResourceDeclaration): Answer => ({
  description: `The ${words(declaration.noun)}.`,
  schema: envelope({ data: rowSchema(declaration) }),
  example: { status: true, data: exampleRow(declaration) },
})

export const listAnswer = (declaration: ResourceDeclaration): Answer => ({
  description: `A page of ${words(declaration.plural)}.`,
  schema: envelope({
    data: { type: 'array', items: rowSchema(declaration) },
    total: { type: 'integer' },
    ...PAGE_MEMBERS,
  }),
  example: { status: true, data: [exampleRow(declaration)], total: 1, page: 1, limit: 20, nextCursor: null },
})

/** The schema of a successful answer with these members. */
export const envelope = (members: { [name: string]: JsonSchema }): JsonSchema => ({
  type: 'object',
  properties: { status: { const: true }, message: { type: 'string' }, ...members },
  required: ['status', ...Object.keys(members)],
})

const changeRoute = (
  declaration: ResourceDeclaration,
  writer: ResourceWriter,
  method: 'PUT' | 'PATCH',
  kind: 'replace' | 'amend',
  body: JsonSchema,
): Route =>
  route<object, JsonObject>({
    ...one(declaration, method, kind, declaration.permissions.edit),
    body,
    bodyExample: kind === 'replace' ? declaration.example : firstField(declaration.example),
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const id = request.params[idParameter(declaration)]
      const { row, wrote } = await writer.change(originOf(request), {
        id,
        kind,
        body: request.body,
        expectedVersion: versionOf(request, request.body),
      })
      return rowReply(presenter(declaration, request)(row), row, wrote)
    },
  })

const one = (
  declaration: ResourceDeclaration,
  method: Route['method'],
  verb: string,
  permission: string,
): Omit<Route, 'handler' | 'answers'> => ({
  method,
  path: `${pathsOf(declaration).one}/{${idParameter(declaration)}}`,
  operationId: `${verb}${capital(declaration.noun)}`,
  summary: `${capital(verb)} ${article(declaration.noun)}`,
  tag: declaration.tag,
  access: { permission },
  params: { [idParameter(declaration)]: { type: 'string', minLength: 1, maxLength: 100 } },
})

const firstField = (example: JsonObject): JsonObject => Object.fromEntries(Object.entries(example).slice(0, 1))

/** The query parameter that filters by a field: its own schema, or that of its items. */
const filterSchema = (schema: JsonSchema): JsonSchema => {
  const { default: _shown, ...rest } = schema.type === 'array' ? (schema.items as JsonSchema) : schema
  return rest
}
