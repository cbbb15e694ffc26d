import type { JsonObject } from '../../../kernel/json.ts'
import { integer, objectSchema, optional, patchSchema } from '../../../kernel/schema.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { chooseFields, FIELDS_QUERY } from '../../../kit/http/list-query.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { assertNewNames } from '../../../kit/resource/new-names.ts'
import { amendSchema } from '../../../kit/resource/schemas.ts'
import { withDefaults } from '../../../kit/resource/pick.ts'
import { mergePatch } from '../../../kit/resource/merge-patch.ts'
import { answered, envelope } from '../../../kit/http/page-members.ts'
import { exampleRow, rowAnswer, rowReply } from '../../../kit/resource/answers.ts'
import { originOf, versionOf } from '../../../kit/resource/writes.ts'
import { listShape } from '../../../kit/resource/rows.ts'
import type { Written } from '../../../kit/resource/writes.ts'
import { route, type Answer, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../../kit/http/validate.ts'
import type { IdentityContext } from '../context.ts'
import { organization, SETTINGS_DEFAULT, shownOrganization, SETTINGS_FIELDS } from './organization.ts'
import { ORGANIZATIONS_TABLE } from '../views.ts'

const declaration = organization.declaration
const settingsCheck = compileCheck(objectSchema(SETTINGS_FIELDS))
/** Version of the organization. */
const VERSIONED = { ...SETTINGS_FIELDS, version: optional(integer({ min: 1 })) }
const settingsAnswer: Answer = {
  description: 'The settings of the organization.',
  schema: envelope({
    data: answered(
      'OrganizationSettings',
      Object.fromEntries(Object.entries(VERSIONED).map(([name, { schema }]) => [name, schema])),
      ['requiresSecondFactor', 'secondFactorFrom'],
    ),
  }),
  example: { status: true, data: { ...SETTINGS_DEFAULT, version: 1 } },
  headers: ['ETag'],
}
const WITH_LIMITS: Answer = {
  ...rowAnswer(declaration),
  example: {
    status: true,
    data: {
      ...exampleRow(declaration),
      limits: { trackers: 100_000, geofencePositions: 2_000_000, filesBytes: 107_374_182_400 },
      uses: { trackers: 412, geofencePositions: 18_204, filesBytes: 52_428_800 },
    },
  },
}
const TRIES = 5

export const organizationRoutes = (context: IdentityContext): Route[] => [
  route<{ fields?: string }>({
    ...about('GET', '/organization', 'readOrganization', 'Read the organization', declaration.permissions.view),
    query: FIELDS_QUERY,
    answers: { 200: WITH_LIMITS },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const row = await context.services.tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
      if (row === undefined) throw new Failure('not_found')
      const { fields } = request.query
      const whole = { ...shownOrganization(row), ...(await quotasOf(context, organizationId)) }
      return rowReply(chooseFields(listShape(declaration).members, fields)(whole), row)
    },
  }),
  route<object, JsonObject>({
    ...about('PATCH', '/organization', 'amendOrganization', 'Amend the organization', declaration.permissions.edit),
    body: amendSchema(declaration),
    bodyExample: { name: 'Green Couriers' },
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const read = () => context.services.tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
      await assertNewNames(declaration.fields, request.body, read)
      const { row, wrote } = await amend(context, request, request.body)
      return rowReply(shownOrganization(row), row, wrote)
    },
  }),
  route<{ fields?: string }>({
    ...about(
      'GET',
      '/organization/settings',
      'readOrganizationSettings',
      'Read the settings of the organization',
      declaration.permissions.view,
    ),
    query: FIELDS_QUERY,
    answers: { 200: settingsAnswer },
    handler: async (request) => {
      const { settings, version } = await loadOrganization(context, userOf(request).organizationId)
      const data = chooseFields(Object.keys(VERSIONED), request.query.fields)({ ...settings, version })
      return rowReply(data, { version })
    },
  }),
  changeSettings(context, 'PUT'),
  changeSettings(context, 'PATCH'),
]

const quotasOf = async ({ services: { quotas } }: IdentityContext, organizationId: string): Promise<JsonObject> =>
  quotas === undefined ? {} : { limits: quotas.limits(), uses: await quotas.usesOf(organizationId) }

const changeSettings = (context: IdentityContext, method: 'PUT' | 'PATCH'): Route =>
  route<object, JsonObject>({
    ...about(
      method,
      '/organization/settings',
      method === 'PUT' ? 'replaceOrganizationSettings' : 'amendOrganizationSettings',
      'Change the settings',
      declaration.permissions.edit,
    ),
    body: method === 'PUT' ? objectSchema(VERSIONED) : patchSchema(VERSIONED),
    bodyExample: { language: 'pl', currency: 'PLN' },
    answers: { 200: settingsAnswer },
    handler: async (request): Promise<Reply> => {
      const { version: _version, ...sent } = request.body
      const { row, wrote } = await writeSettings(context, request, (before) =>
        method === 'PUT' ? sent : mergePatch(before, sent),
      )
      return rowReply({ ...(row.settings as JsonObject), version: row.version }, row, wrote)
    },
  })

/** Replaces all settings of the version that was read, because a merge patch would keep omitted ones. */
const writeSettings = async (
  context: IdentityContext,
  request: RouteRequest<object, JsonObject>,
  next: (before: JsonObject) => JsonObject,
): Promise<Written> => {
  const { organizationId } = userOf(request)
  const asked = versionOf(request, request.body)
  for (let tries = 1; ; tries++) {
    const { name, settings, version } = await loadOrganization(context, organizationId)
    const changed = next(settings)
    assertValid(settingsCheck, changed)
    assertDemanded(request.body, changed)
    const body = { name, settings: withDefaults(SETTINGS_FIELDS, changed) }
    try {
      return await context.organizations.change(originOf(request), {
        id: organizationId,
        kind: 'replace',
        body,
        expectedVersion: asked ?? version,
      })
    } catch (error) {
      const isOvertaken = error instanceof Failure && error.code === 'stale_version' && asked === undefined
      if (!isOvertaken || tries === TRIES) throw error
    }
  }
}

/** @throws Failure invalid for a date without the requirement */
const assertDemanded = ({ secondFactorFrom }: JsonObject, { requiresSecondFactor }: JsonObject): void => {
  if (secondFactorFrom !== undefined && secondFactorFrom !== null && requiresSecondFactor !== true)
    throw invalid('/secondFactorFrom', 'needs requiresSecondFactor')
}

const amend = (context: IdentityContext, request: RouteRequest<object, JsonObject>, body: JsonObject) => {
  const { organizationId } = userOf(request)
  return context.organizations.change(originOf(request), {
    id: organizationId,
    kind: 'amend',
    body,
    expectedVersion: versionOf(request, request.body),
  })
}

const loadOrganization = async (
  context: IdentityContext,
  organizationId: string,
): Promise<{ name: string; settings: JsonObject; version: number }> => {
  const { state, version } = await context.organizations.load(organizationId)
  if (state.status !== 'live') throw new Failure('not_found')
  return { name: state.values.name as string, settings: state.values.settings as JsonObject, version }
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
