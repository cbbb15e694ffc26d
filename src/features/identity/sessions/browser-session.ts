import type { UserCaller } from '../../../kernel/caller.ts'
import { Failure } from '../../../kernel/errors.ts'
import { formatTime, metadataOf } from '../../../kit/http/request-context.ts'
import type { Reply, RouteRequest } from '../../../kit/http/route.ts'
import { identityOf, userCaller } from './authenticate.ts'
import {
  BROWSER_SESSION_MS,
  BROWSER_TOKEN_MS,
  type BrowserCookie,
  browserCookie,
  isOwnPage,
  keptBy,
} from './browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import type { SessionBegan } from '../events.ts'
import type { Person } from '../people.ts'
import { organizationItems, sessionBody } from './session-answer.ts'
import { memberFor } from '../sign-in/sign-in.ts'
import { withoutRunOut } from '../users/user.ts'
import { ACCESS_ROLES, ACCESS_USERS, type AccessRoleRow, type AccessUserRow } from '../views.ts'

/**
 * User in the most recent organization of the browser's person; undefined if the cookie comes from a page of another
 * origin, or no page of ours.
 * @throws Failure unauthenticated for a session that has ended
 */
export const browserCaller = async (
  context: IdentityContext,
  request: Pick<RouteRequest, 'headers' | 'now'>,
): Promise<UserCaller | undefined> => {
  const kept = keptBy(context, request)
  if (kept === undefined || !isOwnPage(context, request)) return undefined
  const { person, session } = await findSession(context, kept, request.now)
  const member = await memberFor(context, person, undefined, session.isByProvider)
  if (member === undefined) throw new Failure('unauthenticated')
  const { tables } = context.services
  const { organizationId, _id: userId } = member
  const row = await tables.get<AccessUserRow>(ACCESS_USERS.name, organizationId, userId)
  if (row?.status !== 'active') throw new Failure('unauthenticated')
  const [role, identity] = await Promise.all([
    tables.get<AccessRoleRow>(ACCESS_ROLES.name, organizationId, row.roleId),
    identityOf(tables, row),
  ])
  const subject = { organizationId, userId, jti: kept.browserId, expiresAt: Date.parse(session.expiresAt) }
  return userCaller(subject, row, role, identity)
}

/** A token of 15 minutes for a browser session, which stays unchanged, as do the tokens of other tabs. */
export const refreshInBrowser = async (
  context: IdentityContext,
  request: RouteRequest<object, { organizationId?: string } | undefined>,
  kept: BrowserCookie,
): Promise<Reply> => {
  const { now, ids, address, body } = request
  const { person, session } = await findSession(context, kept, now)
  const asked = body?.organizationId?.toLowerCase()
  const member = await memberFor(context, person, asked, session.isByProvider)
  if (member === undefined) throw new Failure('not_found', { message: 'You have no such organization.' })
  const { _id: userId, organizationId } = member
  const jti = ids.next()
  const signed = context.tokens.issue({ userId, organizationId, jti }, now, BROWSER_TOKEN_MS)
  const at = formatTime(now)
  const token: SessionBegan = {
    ...{ jti, organizationId, userId, address, browserId: kept.browserId },
    ...{ expiresAt: formatTime(signed.expiresAt), at },
  }
  const metadata = metadataOf({ ...request, caller: undefined }, organizationId, `user:${userId}`)
  const wrote = await context.sessions.beginIn(kept.identityId, token, renewedAt(now), { ids, metadata })
  context.uses.note(kept.browserId, now + BROWSER_SESSION_MS)
  const organizations = await organizationItems(context, person.state, organizationId)
  return {
    body: sessionBody('Here is a new token.', signed, withoutRunOut(member, now), organizations),
    headers: browserCookie(context, kept),
    wrote,
    secret: true,
  }
}

/** Time in use after which the log records that the session continues. */
const RENEWED_EVERY_MS = 86_400_000

/** The renewed session; undefined if the log has a recent enough use. */
const renewedAt =
  (now: number) =>
  (session: SessionBegan): SessionBegan | undefined => {
    const expiresAt = now + BROWSER_SESSION_MS
    if (expiresAt - Date.parse(session.expiresAt) < RENEWED_EVERY_MS) return undefined
    return { ...session, expiresAt: formatTime(expiresAt) }
  }

const findSession = async (
  { sessions, people }: IdentityContext,
  { identityId, browserId }: BrowserCookie,
  now: number,
): Promise<{ person: Person; session: SessionBegan }> => {
  const [live, person] = await Promise.all([sessions.live(identityId, now), people.load(identityId)])
  const session = live.find(({ jti, isBrowser }) => jti === browserId && isBrowser === true)
  if (session === undefined || person === undefined) throw new Failure('unauthenticated')
  return { person, session }
}
