import { Failure } from '../../../kernel/errors.ts'
import { email, id, list, newName, objectSchema, optional, reference, secret } from '../../../kernel/schema.ts'
import { rowOf } from '../../../kit/commands/declared-event.ts'
import { idSchema } from '../../../kit/http/list-query.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { metadataOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest, type Wrote } from '../../../kit/http/route.ts'
import { rowAnswer, rowReply } from '../../../kit/resource/answers.ts'
import { shownBy } from '../../../kit/resource/show.ts'
import { originOf } from '../../../kit/resource/writes.ts'
import { loadReached } from '../users/change-user.ts'
import { SESSION_MEMBER, type SessionMember } from '../sessions/browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import { countInvitation, createUser, invitation, type NewUser } from '../users/create-user.ts'
import { loginOrder, openMemberships } from '../identity.ts'
import { issueToken } from '../sessions/issue-token.ts'
import { type Link, linkEnded } from './links.ts'
import { openLink } from './link-routes.ts'
import { hashNew } from '../passwords/new-password.ts'
import type { Person } from '../people.ts'
import { ACCEPT_INVITATION, type AcceptInvitationData } from '../processes.ts'
import { organizationItem, organizationItems, sessionBody, signInAnswer } from '../sessions/session-answer.ts'
import { challenge } from '../sign-in/sign-in.ts'
import type { SignedToken } from '../sessions/tokens.ts'
import { PASSWORD, user, withKeptIds } from '../users/user.ts'
import { roleOf } from '../users/user-rules.ts'
import { USERS_TABLE } from '../views.ts'

const { declaration } = user

interface InviteBody {
  _id?: string
  email: string
  name?: string
  roleId: string
  hubId?: string[]
  teamIds?: string[]
}

interface AcceptBody extends SessionMember {
  token: string
  name?: string
  password: string
}

export const invitationRoutes = (context: IdentityContext): Route[] => [
  route<object, InviteBody>({
    method: 'POST',
    path: '/user/invite',
    operationId: 'inviteUser',
    summary: 'Invite somebody: they become active when they follow the link that is mailed to them',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    body: objectSchema({
      _id: optional(id()),
      email: email(),
      name: optional(newName({ max: 100 })),
      roleId: reference('roles'),
      hubId: optional(list(reference('hubs'), { max: 500, unique: true })),
      teamIds: optional(list(reference('teams'), { max: 500, unique: true })),
    }),
    bodyExample: { email: 'ada@example.com', name: 'Ada Kowalska', roleId: declaration.example.roleId },
    answers: { 201: rowAnswer(declaration) },
    handler: (request) => invite(context, request),
  }),
  route({
    method: 'POST',
    path: '/user/{userId}/invite',
    operationId: 'inviteUserAgain',
    summary: 'Mail the invitation again; the older link ends',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: { userId: idSchema('The id of a user who has not accepted yet.') },
    answers: { 200: rowAnswer(declaration) },
    handler: (request) => inviteAgain(context, request),
  }),
  route<object, AcceptBody>({
    method: 'POST',
    path: '/auth/accept-invitation',
    operationId: 'acceptInvitation',
    summary: 'Accept an invitation by the token of its link, and sign in',
    description:
      'A person with an account gives its password and keeps its name. One without, or whose address was never confirmed, sets a password here, and a name if they like.',
    tag: 'Authentication',
    access: 'public',
    signsIn: true,
    body: objectSchema({
      token: secret({ max: 200 }),
      name: optional(newName({ max: 100 })),
      password: PASSWORD,
      ...SESSION_MEMBER,
    }),
    bodyExample: { token: '<TOKEN>', name: 'Ada Kowalska', password: 'correct horse battery staple' },
    answers: { 200: signInAnswer('Accepted; a person with a second factor is asked for it.') },
    handler: (request) => accept(context, request),
  }),
]

const invite = async (context: IdentityContext, request: RouteRequest<object, InviteBody>): Promise<Reply> => {
  const { email: address, name = address.slice(0, address.lastIndexOf('@')).slice(0, 100), ...rest } = request.body
  const body = withKeptIds({ ...rest, email: address, name })
  const { row, wrote } = await createUser(context, originOf(request), body as unknown as NewUser)
  return { ...rowReply(await shownBy(declaration, context.services, request, row), row, wrote), status: 201 }
}

const inviteAgain = async (context: IdentityContext, request: RouteRequest): Promise<Reply> => {
  const origin = originOf(request)
  const { row } = await loadReached(context, origin, request.params.userId.toLowerCase())
  if (row.status !== 'invited')
    throw new Failure('conflict', { message: 'This user is not waiting for an invitation to be accepted.' })
  const person = await context.people.load(row.identityId)
  if (person === undefined) throw new Failure('not_found')
  await countInvitation(context, origin, person.state.email)
  const link = invitation(origin, row._id, person.state.email)
  const wrote = await context.people.command(person.identityId, { type: 'issueLink', link, at: link.at }, origin)
  const { state, version } = await context.users.load(row._id)
  const shown = { ...rowOf(row._id, version, state), teamIds: row.teamIds }
  return rowReply(await shownBy(declaration, context.services, request, shown), shown, wrote)
}

const accept = async (context: IdentityContext, request: RouteRequest<object, AcceptBody>): Promise<Reply> => {
  const { ids, now, body } = request
  const [useId, jti] = [ids.next(), ids.next()]
  const { person, link } = await openLink(context, request, ['invitation'], useId)
  const { organizationId = '', userId = '' } = link
  const { email: address, isVerified, passwordHash: known } = person.state
  const guard = context.throttle.guard(address, request.network, now)
  if (isVerified) {
    await guard.admit()
    if (!(await context.passwords.verify(body.password, known, guard))) throw new Failure('invalid_credentials')
  }
  const about = [body.name ?? person.state.name, address]
  const passwordHash = isVerified
    ? undefined
    : await hashNew(context, { password: body.password, about, organizationId, source: request.network })
  const metadata = metadataOf(request, organizationId, `user:${userId}`)
  const origin = { organizationId, now, ids, metadata }
  const wrote = await context.services.processes.run(ACCEPT_INVITATION, userId, origin, async () => {
    const { state } = await context.users.load(userId)
    if (await isUsedBy(context, person.identityId, link, useId)) return undefined
    if (state.status !== 'live' || state.values.status !== 'invited') throw linkEnded()
    const role = await roleOf(context.services.tables, organizationId, state.values.roleId as string)
    const name = isVerified ? await ownName(context, person) : (body.name ?? (state.values.name as string))
    const { identityId } = person
    const data: AcceptInvitationData = {
      ...{ userId, identityId, linkId: link.linkId, useId, name, email: address },
      ...(passwordHash !== undefined && { passwordHash }),
      isOwner: role.key === 'owner',
    }
    return data
  })
  if (isVerified && person.state.factor !== undefined)
    return accepted(challenge(context, request, { person, member: { organizationId } }), wrote)
  const member = await acceptedPerson(context, person, userId, passwordHash ?? known)
  const inBrowser = body.session === 'cookie'
  const issued = await issueToken(context, request, { person: member, organizationId, userId, jti, inBrowser })
  const answer = await session(context, issued.signed, organizationId, userId)
  return { body: answer, headers: issued.headers, wrote: allWrote(wrote, issued.wrote), secret: true }
}

/** The person who accepted, with the given password. @throws Failure invalid_credentials if it was undone meanwhile. */
const acceptedPerson = async (
  { people }: IdentityContext,
  { identityId }: Person,
  userId: string,
  passwordHash: string,
): Promise<Person> => {
  const person = await people.load(identityId)
  const isOpen = person && openMemberships(person.state).some((membership) => membership.userId === userId)
  if (!isOpen || person.state.passwordHash !== passwordHash) throw new Failure('invalid_credentials')
  return person
}

/** A person's name in their most recent organization. */
const ownName = async ({ users }: IdentityContext, { state }: Person): Promise<string> => {
  for (const { userId } of loginOrder(state)) {
    const { values } = (await users.load(userId)).state
    if (values.status === 'active') return values.name as string
  }
  return state.name
}

const accepted = (asked: Reply, wrote: Wrote | undefined): Reply => ({
  ...asked,
  body: { ...asked.body, message: 'Accepted. Sign in with a code of your second factor.' },
  wrote,
})

/** Whether this request followed the link, perhaps before a restart of the process. */
const isUsedBy = async (
  { people }: IdentityContext,
  identityId: string,
  { linkId }: Link,
  useId: string,
): Promise<boolean> =>
  (await people.load(identityId))?.state.links.some((one) => one.linkId === linkId && one.useId === useId) ?? false

/** Like a login. The tables may not show the user as active yet. */
const session = async (
  context: IdentityContext,
  signed: SignedToken,
  organizationId: string,
  userId: string,
): Promise<{ [member: string]: unknown }> => {
  const { tables } = context.services
  const { state, version } = await context.users.load(userId)
  const stored = await tables.get(USERS_TABLE, organizationId, userId)
  const member = { ...rowOf(userId, version, state), teamIds: stored?.teamIds ?? [] }
  const person = await context.people.load(state.values.identityId as string)
  const organization = await context.organizations.load(organizationId)
  const row = rowOf(organizationId, organization.version, organization.state)
  const role = await roleOf(tables, organizationId, state.values.roleId as string)
  const others = person === undefined ? [] : openMemberships(person.state)
  const memberships = others.filter((one) => one.organizationId !== organizationId)
  const items = await organizationItems(context, { memberships }, undefined)
  return sessionBody('Welcome.', signed, member, [...items, organizationItem(row, role, userId, true)])
}
