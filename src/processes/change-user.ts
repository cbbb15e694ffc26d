import { unlessGone } from '../kernel/errors.ts'
import { CHANGE_USER, type ChangeUserData } from '../features/identity/processes.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import { changeOwner, issueLink, type Office } from './office.ts'
import { showIdentity } from './proof.ts'
import { joinTeams, leaveTeams } from './team-members.ts'

/**
 * Changes a user with all dependent data: ownership, a link to the new e-mail, teams, the password (which ends
 * sessions). The last owner and a stale version refuse it.
 */
export const changeUser = (office: Office): Process<ChangeUserData> => {
  /** Whether this process wrote the event at the version that was decided on. */
  const isWritten = async ({ userId, version }: ChangeUserData, originOf: OriginOf): Promise<boolean> => {
    const [event] = await office.log.read(`user-${userId}`, version, 1)
    return event?.id === originOf().ids.next()
  }
  return defineProcess(CHANGE_USER, [
    {
      name: 'former owner',
      run: async (data, originOf) =>
        data.owners === 'remove' ? changeOwner(office, 'remove', data.userId, originOf()) : undefined,
      undo: async (data, originOf) =>
        data.owners === 'remove' ? changeOwner(office, 'add', data.userId, originOf()) : undefined,
    },
    {
      name: 'user',
      run: async (data, originOf) => {
        if (await isWritten(data, originOf)) return undefined
        const { userId: id, version: expectedVersion, change } = data
        const { emailLink } = data
        const shown = emailLink && { pendingEmail: emailLink.email, pendingEmailUntil: emailLink.expiresAt }
        return (await office.users.change(originOf(), { id, ...change, expectedVersion }, shown)).wrote
      },
      undo: async ({ userId: id, identityId, before: body }, originOf) => {
        const restored = office.users.change(originOf(), { id, kind: 'amend', body }).then(({ wrote }) => wrote)
        return allWrote(await unlessGone(restored), await showIdentity(office, { identityId }, originOf))
      },
    },
    {
      name: 'e-mail',
      run: (data, originOf) => changeEmail(office, data, originOf),
    },
    {
      name: 'new owner',
      run: async (data, originOf) =>
        data.owners === 'add' ? changeOwner(office, 'add', data.userId, originOf()) : undefined,
    },
    { name: 'joined teams', run: ({ userId, joined }, originOf) => joinTeams(office, originOf, userId, joined) },
    { name: 'left teams', run: ({ userId, left }, originOf) => leaveTeams(office, originOf, userId, left) },
    {
      name: 'password',
      run: (data, originOf) => changePassword(office, data, originOf),
    },
    {
      name: 'reopening',
      run: async ({ identityId, reopeningLink }, originOf) =>
        reopeningLink && issueLink(office, originOf(), identityId, reopeningLink),
    },
  ])
}

/** Sessions end after the change of the password: a login that began before finds the new one, or is among them. */
const changePassword = async (
  office: Office,
  { identityId, passwordHash, opensOnly, keeps, proofs }: ChangeUserData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  if (passwordHash === undefined) return undefined
  const origin = originOf()
  const command = { type: 'changePassword', passwordHash, opensOnly, proofs, at: formatTime(origin.now) } as const
  const changed = await office.people.command(identityId, command, origin)
  const ended = await office.sessions.endAll(identityId, { except: keeps, at: command.at }, originOf('sessions'))
  return allWrote(changed, ended, await showIdentity(office, { identityId }, originOf))
}

/** A new request ends the previous one, in any organization. */
const changeEmail = async (
  office: Office,
  { identityId, emailLink, cancelsEmail, proofs }: ChangeUserData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  if (emailLink === undefined && cancelsEmail !== true) return undefined
  const origin = originOf()
  const cancel = { type: 'cancelEmailChange', at: formatTime(origin.now) } as const
  const changed =
    emailLink === undefined
      ? await unlessGone(office.people.command(identityId, cancel, origin))
      : await issueLink(office, origin, identityId, emailLink, proofs)
  return allWrote(changed, await showIdentity(office, { identityId }, originOf))
}
