import { Failure } from '../../../kernel/errors.ts'
import { idSchema } from '../../../kit/http/list-query.ts'
import { formatTime, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { asService, originOf } from '../../../kit/resource/writes.ts'
import { loadReached } from '../users/change-user.ts'
import type { IdentityContext } from '../context.ts'
import { newLink } from '../links/links.ts'
import { CHANGE_FACTOR } from '../processes.ts'
import { assertOwner } from '../users/user-rules.ts'

/** An administrator removes the factor of a user who lost it. */
export const resetSecondFactorRoute = (context: IdentityContext): Route =>
  route({
    method: 'DELETE',
    path: '/user/{userId}/second-factor',
    operationId: 'resetSecondFactor',
    summary: "Take a user's second factor off, when they have lost it; their sessions end",
    description:
      'Under the rules for setting their password: in the organization where the person first registered, and by nobody who has less than they have. Their password opens this organization alone from then on; other organizations open again by the link that is mailed to them.',
    tag: 'Second factor',
    access: { permission: 'edit/user' },
    params: { userId: idSchema('The id of the user.') },
    answers: { 200: { description: 'It is off.' } },
    handler: (request) => reset(context, request),
  })

const reset = async (context: IdentityContext, request: RouteRequest): Promise<Reply> => {
  const origin = originOf(request)
  const { organizationId, now, ids } = origin
  const caller = userOf(request)
  const linkId = ids.next()
  const { row, role } = await loadReached(context, origin, request.params.userId.toLowerCase())
  assertOwner(caller, role)
  const { identityId } = row
  const wrote = await context.services.processes.run(CHANGE_FACTOR, identityId, asService(origin), async () => {
    const state = (await context.people.load(identityId))?.state
    if (state === undefined) throw new Failure('not_found')
    if (state.originOrganizationId !== organizationId)
      throw new Failure('forbidden', {
        message: 'A second factor is only taken off in the organization where this person first registered.',
      })
    if (state.factor === undefined) return undefined
    const at = formatTime(now)
    const isElsewhere = state.memberships.some((membership) => membership.organizationId !== organizationId)
    if (!isElsewhere) return { identityId, change: { type: 'removeFactor', at } as const }
    const asked = { organizationId, userId: row._id, askedBy: caller.userId, isForFactor: true }
    return {
      identityId,
      change: { type: 'removeFactor', opensOnly: organizationId, at } as const,
      reopeningLink: newLink({ linkId, kind: 'reopening', email: state.email, ...asked }, now),
    }
  })
  return { wrote }
}
