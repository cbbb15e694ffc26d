import type { JsonSchema } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import { chooseFields } from '../../../kit/http/list-query.ts'
import { rowSchema } from '../../../kit/resource/schemas.ts'
import { listShape } from '../../../kit/resource/rows.ts'
import { answered, dataAnswer, DATE_TIME, envelope, UUID } from '../../../kit/http/page-members.ts'
import { exampleRow } from '../../../kit/resource/answers.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import type { Answer } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { openMemberships } from '../identity.ts'
import type { IdentityState } from '../identity-state.ts'
import type { SignedToken } from './tokens.ts'
import { OWN_USER, user, type UserRow } from '../users/user.ts'
import {
  ACCESS_ORGANIZATIONS,
  type AccessOrganizationRow,
  ORGANIZATIONS_TABLE,
  ROLES_TABLE,
  USERS_TABLE,
} from '../views.ts'

export interface OrganizationItem {
  userId: string
  organizationId: string
  organizationName: string
  organizationLogo: string | null
  /** Key of a predefined role, otherwise its name. */
  roleName: string
  isCurrent: boolean
}

/** Organizations with an active membership that the password opens, oldest membership first. */
export const organizationItems = async (
  { services: { tables } }: Pick<IdentityContext, 'services'>,
  person: Pick<IdentityState, 'memberships' | 'opensOnly'>,
  currentId: string | undefined,
): Promise<OrganizationItem[]> => {
  const items: OrganizationItem[] = []
  for (const { organizationId, userId } of openMemberships(person)) {
    const member = await tables.get<UserRow>(USERS_TABLE, organizationId, userId)
    const organization = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
    if (member === undefined || member.status !== 'active' || organization === undefined) continue
    const role = await tables.get(ROLES_TABLE, organizationId, member.roleId)
    items.push(organizationItem(organization, role, userId, organizationId === currentId))
  }
  return items
}

export const organizationItem = (
  organization: Row,
  role: Row | undefined,
  userId: string,
  isCurrent: boolean,
): OrganizationItem => ({
  userId,
  organizationId: organization._id as string,
  organizationName: organization.name as string,
  organizationLogo: (organization.logo as string | undefined) ?? null,
  roleName: ((role?.key ?? role?.name) as string | undefined) ?? '',
  isCurrent,
})

const MEMBERS = listShape(user.declaration).members

/** Members of an answer that issues a token. */
export const sessionBody = (
  message: string,
  { token, expiresInSeconds }: SignedToken,
  member: Row,
  organizations: OrganizationItem[],
): { [name: string]: unknown } => ({
  message,
  token,
  expires_in: expiresInSeconds,
  data: chooseFields(MEMBERS, MEMBERS.join())(member),
  organizations,
})

/** Time from which the organization requires a second factor that the person lacks. */
export const secondFactorDue = async (
  { services: { tables } }: Pick<IdentityContext, 'services'>,
  organizationId: string,
  { factor }: Pick<IdentityState, 'factor'>,
  now: number,
): Promise<{ secondFactorDue?: string }> => {
  if (factor !== undefined) return {}
  const row = await tables.get<AccessOrganizationRow>(ACCESS_ORGANIZATIONS.name, organizationId, organizationId)
  const { fromMs = now } = row ?? {}
  return fromMs <= now ? {} : { secondFactorDue: formatTime(fromMs) }
}

const ORGANIZATIONS: JsonSchema = {
  type: 'array',
  items: answered('Membership', {
    userId: UUID,
    organizationId: UUID,
    organizationName: { type: 'string' },
    organizationLogo: { type: ['string', 'null'] },
    roleName: { type: 'string', description: 'The key of a predefined role, otherwise its name.' },
    isCurrent: { type: 'boolean', description: 'The organization of the token.' },
  }),
}

export const ORGANIZATION_MEMBERS = Object.keys((ORGANIZATIONS.items as { properties: object }).properties)

const EXAMPLE_ITEM = {
  userId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  organizationName: 'Green Couriers',
  organizationLogo: null,
  roleName: 'owner',
  isCurrent: true,
}

export const organizationsAnswer: Answer = dataAnswer('The organizations of the caller.', ORGANIZATIONS, [EXAMPLE_ITEM])

const SECOND_FACTOR_DUE: JsonSchema = {
  ...DATE_TIME,
  description: 'From then on the organization asks for a second factor, which the caller does not have yet.',
}

const SESSION_MEMBERS = envelope({
  token: { type: 'string', description: 'The access token.' },
  expires_in: { type: 'integer', description: 'Seconds.' },
  data: rowSchema(OWN_USER),
  organizations: ORGANIZATIONS,
})

const SESSION: JsonSchema = {
  title: 'Session',
  ...SESSION_MEMBERS,
  properties: { ...(SESSION_MEMBERS.properties as object), secondFactorDue: SECOND_FACTOR_DUE },
}

export const sessionAnswer = (
  description: string,
  further: { [name: string]: JsonSchema } = {},
  example: object = {},
): Answer => ({
  description,
  schema: Object.keys(further).length === 0 ? SESSION : { allOf: [SESSION, answered(undefined, further)] },
  example: {
    status: true,
    message: 'Welcome.',
    token: '<ACCESS_TOKEN>',
    expires_in: 86_400,
    data: { ...exampleRow(user.declaration), status: 'active' },
    organizations: [EXAMPLE_ITEM],
    ...example,
  },
})

const CHALLENGE: JsonSchema = {
  title: 'SignInChallenge',
  ...envelope({
    challenge: { type: 'string', description: 'For `POST /auth/login/second-factor`; nothing else takes it.' },
    expires_in: { type: 'integer', description: 'Seconds.' },
  }),
}

/** Answer of an operation that signs in: a token, or a challenge for users with a second factor. */
export const signInAnswer = (description: string): Answer => {
  const { schema, ...answer } = sessionAnswer(description)
  return { ...answer, schema: { anyOf: [schema as JsonSchema, CHALLENGE] } }
}

/** The same, or only a message for a person who is an active user nowhere. */
export const confirmedAnswer = (description: string): Answer => {
  const { schema, ...answer } = signInAnswer(description)
  const { anyOf } = schema as { anyOf: JsonSchema[] }
  return { ...answer, schema: { anyOf: [...anyOf, { title: 'Confirmed', ...envelope({}) }] } }
}
