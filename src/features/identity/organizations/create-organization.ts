import { Failure } from '../../../kernel/errors.ts'
import { bool, latitude, longitude, newName, objectSchema, optional, withDefault } from '../../../kernel/schema.ts'
import { metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import type { IdentityContext } from '../context.ts'
import { foundOrganization } from './found-organization.ts'
import { assertMayFound } from './founding.ts'
import { openMemberships } from '../identity.ts'
import { exchangeToken } from '../sessions/issue-token.ts'
import { beginning, type HubFields } from './organization-source.ts'
import { organizationItem, organizationItems, sessionAnswer, sessionBody } from '../sessions/session-answer.ts'
import type { UserRow } from '../users/user.ts'
import { USERS_TABLE } from '../views.ts'

interface CreateBody extends HubFields {
  organizationName: string
  copyDataFromFirstOrg?: boolean
}

/** Creates a further organization, switches the caller to it and revokes the token of the call. */
export const createOrganizationRoute = (context: IdentityContext): Route =>
  route<object, CreateBody>({
    method: 'POST',
    path: '/organization',
    operationId: 'createOrganization',
    summary: 'Create an organization and switch to it',
    tag: 'Organization',
    access: { permission: 'create/organization' },
    isPersonal: true,
    revokesToken: true,
    aliases: [{ path: '/auth/create-organization', operationId: 'createOrganizationAlias' }],
    body: objectSchema({
      organizationName: newName({ min: 3, max: 100 }),
      hubName: optional(newName({ max: 100 })),
      hubLat: optional(latitude()),
      hubLng: optional(longitude()),
      copyDataFromFirstOrg: withDefault(bool(), false),
    }),
    bodyExample: {
      organizationName: 'Blue Couriers',
      hubName: 'Kraków',
      hubLat: 50.06,
      hubLng: 19.94,
      copyDataFromFirstOrg: true,
    },
    answers: {
      200: sessionAnswer(
        'Created; the token of the call is revoked.',
        { isHubSet: { type: 'boolean' } },
        { isHubSet: true },
      ),
    },
    handler: (request) => createOrganization(context, request),
  })

const createOrganization = async (
  context: IdentityContext,
  request: RouteRequest<object, CreateBody>,
): Promise<Reply> => {
  const caller = userOf(request)
  const { ids, now, body } = request
  const { identityId, email } = caller
  const [organizationId, userId, jti] = [ids.next(), ids.next(), ids.next()]
  const person = await context.people.load(identityId)
  const member = await context.services.tables.get<UserRow>(USERS_TABLE, caller.organizationId, caller.userId)
  if (person === undefined || member === undefined) throw new Failure('unauthenticated')
  const metadata = metadataOf(request, organizationId, `user:${userId}`)
  const origin = { organizationId, now, ids, metadata }
  const { organization, owner, wrote } = await foundOrganization(context, origin, userId, async () => {
    assertMayFound(person.state, context.config.organizationsPerUser)
    return {
      ...(await beginning(context, person.state, body, body.copyDataFromFirstOrg === true)),
      name: body.organizationName,
      owner: { identityId, userId, name: member.name, email },
    }
  })
  const before = openMemberships(person.state).filter((membership) => membership.organizationId !== organizationId)
  const items = [
    ...(await organizationItems(context, { memberships: before }, undefined)),
    organizationItem(organization, { key: 'owner' }, userId, true),
  ]
  // Last, so that a client without an answer may retry with this token.
  const exchanged = await exchangeToken(context, request, { userId, organizationId, jti })
  return {
    body: { ...sessionBody('Your organization is ready.', exchanged.signed, owner, items), isHubSet: true },
    wrote: allWrote(wrote, exchanged.wrote),
    secret: true,
  }
}
