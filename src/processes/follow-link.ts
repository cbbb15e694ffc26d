import { FOLLOW_LINK, type FollowLinkData } from '../features/identity/processes.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { endSessions, type Office, unlessGone } from './office.ts'

/**
 * Somebody followed a link that was mailed to them: they are verified, have a new password, which ends their sessions, or a
 * new e-mail, in every organization. An e-mail that somebody else has by now refuses it.
 */
export const followLink = (office: Office): Process<FollowLinkData> =>
  defineProcess(FOLLOW_LINK, [
    {
      name: 'identity',
      run: ({ identityId, email: _email, ...follow }, originOf) => {
        const origin = originOf()
        const command = { type: 'followLink', ...follow, at: formatTime(origin.now) } as const
        return office.people.command(identityId, command, origin)
      },
    },
    { name: 'sessions', run: (data, originOf) => endSessions(office, data, originOf()) },
    { name: 'users', run: (data, originOf) => showEmail(office, data, originOf) },
  ])

const showEmail = async (
  { people, users }: Pick<Office, 'people' | 'users'>,
  { identityId, email }: FollowLinkData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  if (email === undefined) return undefined
  const person = await people.load(identityId)
  const wrotes: (Wrote | undefined)[] = []
  for (const { organizationId, userId } of person?.state.memberships ?? []) {
    const origin = originOf(userId)
    const there = { ...origin, organizationId, metadata: { ...origin.metadata, organizationId } }
    const shown = users.update(there, userId, ({ pendingEmail: _pending, pendingEmailUntil: _until, ...before }) => ({
      ...before,
      email,
    }))
    wrotes.push(await unlessGone(shown.then(({ wrote }) => wrote)))
  }
  return allWrote(...wrotes)
}
