import { ACCEPT_INVITATION, type AcceptInvitationData } from '../features/identity/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import { changeOwner, type Office } from './office.ts'
import { proofSteps } from './proof.ts'

/** A person followed the link of an invitation: they become verified, and their user active. */
export const acceptInvitation = (office: Office): Process<AcceptInvitationData> =>
  defineProcess(ACCEPT_INVITATION, [
    {
      name: 'link',
      run: ({ identityId, linkId, useId, passwordHash }, originOf) => {
        const origin = originOf()
        const kinds = ['invitation'] as const
        const command = { type: 'followLink', linkId, kinds, useId, passwordHash, at: formatTime(origin.now) } as const
        return office.people.command(identityId, command, origin)
      },
    },
    ...proofSteps<AcceptInvitationData>(office, ({ identityId, passwordHash }) =>
      passwordHash === undefined ? undefined : { identityId },
    ),
    {
      name: 'user',
      run: async ({ userId, identityId, name, email }, originOf) => {
        // An undone change of the e-mail revoked it meanwhile.
        if (
          (await office.people.load(identityId))?.state.memberships.some((one) => one.userId === userId && one.onlyFor)
        )
          return undefined
        const accepted = (before: object) => ({ ...before, name, email, status: 'active' })
        return (await office.users.update(originOf(), userId, accepted)).wrote
      },
    },
    {
      name: 'owner',
      run: async ({ userId, isOwner }, originOf) =>
        isOwner ? changeOwner(office, 'add', userId, originOf()) : undefined,
    },
    {
      name: 'accessed',
      run: ({ identityId }, originOf) => {
        const origin = originOf()
        const { organizationId } = origin
        const command = { type: 'access', organizationId, at: formatTime(origin.now) } as const
        return office.people.command(identityId, command, origin)
      },
    },
  ])
