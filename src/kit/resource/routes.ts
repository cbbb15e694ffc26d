import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { objectSchema } from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import { answerList } from '../http/answer-list.ts'
import { pageTexts } from '../http/page-texts.ts'
import { FIELDS_QUERY, listQuerySchema, shownRow, type ListQuery } from '../http/list-query.ts'
import { userOf } from '../http/request-context.ts'
import { route, type Route } from '../http/route.ts'
import { amendSchema, createSchema, nameOf, replaceSchema } from './schemas.ts'
import {
  VERBS,
  type ResourceAction,
  type ResourceDeclaration,
  type ResourceServices,
  type Verb,
} from './declaration.ts'
import {
  article,
  capital,
  idParameter,
  listAnswer,
  pathsOf,
  rowAnswer,
  rowReply,
  toldAnswer,
  words,
} from './answers.ts'
import { assertNewNames } from './new-names.ts'
import { withDefaults } from './pick.ts'
import { listShape } from './rows.ts'
import { one, type RouteParts, type Served, written } from './served.ts'
import { findRow, presented } from './show.ts'
import { ResourceWriter } from './write.ts'
import { originOf, versionOf } from './writes.ts'

export const resourceRoutes = (
  declaration: ResourceDeclaration,
  services: ResourceServices,
  parts: RouteParts = {},
): Route[] => {
  const writer = new ResourceWriter(declaration, services)
  const served: Served = { writes: writer, ...parts, declaration, services, shape: listShape(declaration) }
  const routes: { [verb in Verb]: (served: Served) => Route } = {
    list: listRoute,
    read: readRoute,
    create: createRoute,
    replace: (one) => changeRoute(one, 'PUT', 'replace', replaceSchema(declaration)),
    amend: (one) => changeRoute(one, 'PATCH', 'amend', amendSchema(declaration)),
    delete: deleteRoute,
  }
  const { verbs = VERBS, actions = [], rollout } = declaration
  const settles = parts.settles ?? declaration.settles
  return [
    ...verbs.map((verb) => routes[verb](served)),
    ...[...actions, ...(parts.actions ?? [])].map((action) => actionRoute(served, action)),
    ...(declaration.secrets?.told?.rotation === undefined ? [] : [rotationRoute(served, writer)]),
  ]
    .map((made) => (rollout === undefined ? made : { ...made, rollout }))
    .map((made) => (settles === undefined || made.method === 'GET' ? made : settling(declaration, made, settles)))
}

const settling = (
  declaration: ResourceDeclaration,
  made: Route,
  settles: NonNullable<ResourceDeclaration['settles']>,
): Route => ({
  ...made,
  settles: (params) =>
    settles({
      id: params[idParameter(declaration)]?.toLowerCase() ?? '',
      kind: made.method === 'DELETE' ? 'delete' : 'write',
    }),
})

const listRoute = (served: Served): Route => {
  const { declaration, services, shape } = served
  const isPresented = (served.present ?? declaration.present) !== undefined
  const texts = { kept: pageTexts, view: '', show: (row: Row) => row }
  const path = pathsOf(declaration).many
  return route<ListQuery>({
    method: 'GET',
    path,
    operationId: `list${capital(declaration.plural)}`,
    summary: `List ${words(declaration.plural)}`,
    tag: declaration.tag,
    access: viewing(served),
    query: listQuerySchema(shape),
    answers: { 200: listAnswer(declaration) },
    handler: async (request) => {
      const caller = userOf(request)
      const { query } = request
      const conditions = await served.conditions?.(query, caller)
      return answerList(shape, {
        tables: services.tables,
        caller,
        query,
        takesRows: request.takesRows,
        path: `/api/v3${path}`,
        ...conditions,
        where: { ...conditions?.where, ...ownLimit(served, caller) },
        ...(isPresented ? { present: (rows) => presented(served, request, rows, query.fields, true) } : { texts }),
      })
    },
  })
}

const readRoute = (served: Served): Route =>
  route<{ fields?: string }>({
    ...one(served.declaration, 'GET', 'read', served.declaration.permissions.view),
    access: viewing(served),
    query: { ...FIELDS_QUERY, properties: { ...served.read?.query, ...(FIELDS_QUERY.properties as JsonObject) } },
    answers: { 200: rowAnswer(served.declaration) },
    handler: async (request) => {
      const { declaration, services, shape } = served
      const { fields } = request.query
      const id = request.params[idParameter(declaration)]
      const row = (await served.read?.row(request, id)) ?? (await findRow(declaration, services, request, id))
      for (const [field, value] of Object.entries(ownLimit(served, userOf(request))))
        if (row[field] !== value) throw new Failure('not_found')
      const show = shownRow(shape, fields, userOf(request))
      const [whole] = await presented(served, request, [row], fields)
      return rowReply(show(whole), row)
    },
  })

const viewing = ({ declaration, own }: Served): Route['access'] => ({
  permission: declaration.permissions.view,
  ...(own !== undefined && { own: true }),
})

/** Field values that a row must have for callers who only see their own. */
const ownLimit = ({ declaration, own }: Served, caller: UserCaller): { [field: string]: string } =>
  own === undefined || caller.permissions.has(declaration.permissions.view) ? {} : { [own]: caller.userId }

const createRoute = (served: Served): Route => {
  const { declaration, writes } = served
  const once = declaration.secrets?.told
  const told = once === undefined ? '' : `; its ${words(once.member)} is told once`
  return route<object, JsonObject>({
    method: 'POST',
    path: pathsOf(declaration).one,
    operationId: `create${capital(declaration.noun)}`,
    summary: `Create ${article(declaration.noun)}${told}`,
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    body: { title: `New${nameOf(declaration)}`, ...createSchema(declaration) },
    bodyExample: declaration.example,
    bodyBytesMax: declaration.body?.bytesMax,
    answers: { 201: toldAnswer(declaration, true) },
    handler: async (request) => written(served, request, await writes.create(originOf(request), request.body), 201),
  })
}

const changeRoute = (served: Served, method: 'PUT' | 'PATCH', kind: 'replace' | 'amend', body: JsonSchema): Route => {
  const { declaration, writes } = served
  const title = `${nameOf(declaration)}${kind === 'replace' ? 'Replacement' : 'Patch'}`
  return route<object, JsonObject>({
    ...one(declaration, method, kind, declaration.permissions.edit),
    body: { title, ...body },
    bodyExample: kind === 'replace' ? changeable(declaration) : firstField(changeable(declaration)),
    bodyBytesMax: declaration.body?.bytesMax,
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const id = request.params[idParameter(declaration)].toLowerCase()
      const expectedVersion = versionOf(request, request.body)
      const before = () => served.services.tables.get(declaration.plural, userOf(request).organizationId, id)
      await assertNewNames(declaration.fields, request.body, before)
      const change = { id, kind, body: request.body, expectedVersion }
      return written(served, request, await writes.change(originOf(request), change))
    },
  })
}

const deleteRoute = (served: Served): Route => {
  const { declaration, writes } = served
  const replaceWith = {
    type: 'string',
    format: 'uuid',
    description: `Whatever names the deleted one names this ${words(declaration.noun)} instead.`,
  }
  const erase = { type: 'boolean', description: 'Nothing of it is left, not even in the log and the history.' }
  return route<{ replaceWith?: string; erase?: boolean }>({
    ...one(declaration, 'DELETE', 'delete', declaration.permissions.edit),
    query: {
      type: 'object',
      properties: {
        ...(declaration.deletion?.replaceable && { replaceWith }),
        ...(declaration.deletion?.erasable && { erase }),
      },
      additionalProperties: false,
    },
    answers: { 200: { description: 'It is deleted.' } },
    handler: async (request) => {
      const id = request.params[idParameter(declaration)].toLowerCase()
      const expectedVersion = versionOf(request, undefined)
      const heir = request.query.replaceWith?.toLowerCase()
      const { erase = false } = request.query
      const deletion = {
        id,
        expectedVersion,
        ...(heir !== undefined && { replaceWith: heir }),
        ...(erase && { erase }),
      }
      const { wrote, isPending } = await writes.delete(originOf(request), deletion)
      return { wrote, ...(isPending && { headers: { 'waymark-pending': 'true' } }) }
    },
  })
}

const actionRoute = (served: Served, action: ResourceAction): Route => {
  const { declaration, services, writes } = served
  return route<object, JsonObject>({
    ...one(declaration, 'POST', 'read', action.permission ?? declaration.permissions.edit, `/${action.path}`),
    operationId: action.operationId,
    summary: action.summary,
    ...(action.body !== undefined && {
      body: objectSchema(action.body),
      bodyExample: action.bodyExample,
      bodyRequired: Object.values(action.body).some(({ optional }) => optional !== true),
    }),
    answers: { 200: action.answer ?? rowAnswer(declaration) },
    handler: async (request) => {
      const row = await findRow(declaration, services, request, request.params[idParameter(declaration)])
      const origin = { ...originOf(request), caller: userOf(request) }
      const body = action.body === undefined ? {} : withDefaults(action.body, request.body ?? {})
      const done = await action.run({ request, body, origin, id: row._id as string, row, writes, services })
      return 'row' in done ? written(served, request, done) : done
    },
  })
}

/** Replaces the secret that was shown with another one. */
const rotationRoute = (served: Served, writer: ResourceWriter): Route => {
  const { declaration, services } = served
  const { path = '', operationId = '', summary = '' } = declaration.secrets?.told?.rotation ?? {}
  return route({
    ...one(declaration, 'POST', 'read', declaration.permissions.edit, `/${path}`),
    operationId,
    summary,
    answers: { 200: toldAnswer(declaration) },
    handler: async (request) => {
      const row = await findRow(declaration, services, request, request.params[idParameter(declaration)])
      return written(served, request, await writer.rotate(originOf(request), row._id as string))
    },
  })
}

/** The example without the fields that a create sets for good. */
const changeable = ({ example, fixed = [] }: ResourceDeclaration): JsonObject =>
  Object.fromEntries(Object.entries(example).filter(([name]) => !fixed.includes(name)))

const firstField = (example: JsonObject): JsonObject => Object.fromEntries(Object.entries(example).slice(0, 1))
