import type { JsonObject } from '../../kernel/json.ts'
import { objectSchema, patchSchema } from '../../kernel/schema.ts'
import { Failure } from '../../kernel/errors.ts'
import { chooseFields, FIELDS_PARAMETER } from '../../kit/list-query.ts'
import { userOf } from '../../kit/request-context.ts'
import { amendSchema, mergePatch, withDefaults } from '../../kit/resource-declaration.ts'
import { envelope, listShape, originOf, rowAnswer, rowReply, versionOf } from '../../kit/resource-routes.ts'
import { route, type Answer, type Reply, type Route, type RouteRequest } from '../../kit/route.ts'
import { assertValid, compileCheck } from '../../kit/validate.ts'
import type { IdentityContext } from './context.ts'
import { organization, SETTINGS_DEFAULT, SETTINGS_FIELDS } from './organization.ts'
import { ORGANIZATIONS_TABLE } from './views.ts'

const declaration = organization.declaration
const settingsCheck = compileCheck(objectSchema(SETTINGS_FIELDS))
const settingsAnswer: Answer = {
  description: 'The settings of the organization.',
  schema: envelope({ data: objectSchema(SETTINGS_FIELDS) }),
  example: { status: true, data: SETTINGS_DEFAULT },
}

/** The organization of the token, and its settings. */
export const organizationRoutes = (context: IdentityContext): Route[] => [
  route<{ fields?: string }>({
    ...about('GET', '/organization', 'readOrganization', 'Read the organization', declaration.permissions.view),
    query: { type: 'object', properties: { fields: FIELDS_PARAMETER }, additionalProperties: false },
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const row = await context.services.tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
      if (row === undefined) throw new Failure('not_found')
      return rowReply(chooseFields(listShape(declaration).members, request.query.fields)({ logo: null, ...row }), row)
    },
  }),
  route<object, JsonObject>({
    ...about('PATCH', '/organization', 'amendOrganization', 'Amend the organization', declaration.permissions.edit),
    body: amendSchema(declaration),
    bodyExample: { name: 'Green Couriers' },
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { row, wrote } = await amend(context, request, request.body)
      return rowReply({ logo: null, ...row }, row, wrote)
    },
  }),
  route({
    ...about(
      'GET',
      '/organization/settings',
      'readOrganizationSettings',
      'Read the settings of the organization',
      declaration.permissions.view,
    ),
    answers: { 200: settingsAnswer },
    handler: async (request) => ({ body: { data: await settingsOf(context, userOf(request).organizationId) } }),
  }),
  changeSettings(context, 'PUT'),
  changeSettings(context, 'PATCH'),
]

const changeSettings = (context: IdentityContext, method: 'PUT' | 'PATCH'): Route =>
  route<object, JsonObject>({
    ...about(
      method,
      '/organization/settings',
      method === 'PUT' ? 'replaceOrganizationSettings' : 'amendOrganizationSettings',
      'Change the settings',
      declaration.permissions.edit,
    ),
    body: method === 'PUT' ? objectSchema(SETTINGS_FIELDS) : patchSchema(SETTINGS_FIELDS),
    bodyExample: { language: 'pl', currency: 'PLN' },
    answers: { 200: settingsAnswer },
    handler: async (request): Promise<Reply> => {
      const before = await settingsOf(context, userOf(request).organizationId)
      const body = method === 'PUT' ? request.body : (mergePatch(before, request.body) as JsonObject)
      assertValid(settingsCheck, body)
      const settings = withDefaults(SETTINGS_FIELDS, body)
      // A merge patch would keep what the new configuration lacks.
      const gone = Object.keys((before.configuration ?? {}) as JsonObject).filter(
        (key) => !Object.hasOwn(settings.configuration as JsonObject, key),
      )
      const configuration = { ...Object.fromEntries(gone.map((key) => [key, null])), ...(settings.configuration as JsonObject) }
      const { row, wrote } = await amend(context, request, { settings: { ...settings, configuration } })
      return { body: { data: row.settings }, wrote }
    },
  })

const amend = (context: IdentityContext, request: RouteRequest<object, JsonObject>, body: JsonObject) => {
  const { organizationId } = userOf(request)
  return context.organizations.change(originOf(request), {
    id: organizationId,
    kind: 'amend',
    body,
    expectedVersion: versionOf(request, request.body),
  })
}

const settingsOf = async (context: IdentityContext, organizationId: string): Promise<JsonObject> => {
  const { state } = await context.organizations.load(organizationId)
  if (state.status !== 'live') throw new Failure('not_found')
  return state.values.settings as JsonObject
}

const about = (
  method: Route['method'],
  path: string,
  operationId: string,
  summary: string,
  permission: string,
): Pick<Route, 'method' | 'path' | 'operationId' | 'summary' | 'tag' | 'access'> => ({
  method,
  path,
  operationId,
  summary,
  tag: declaration.tag,
  access: { permission },
})
