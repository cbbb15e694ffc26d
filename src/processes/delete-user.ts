import { changeOwners } from '../features/identity/owners.ts'
import { DELETE_USER, type DeleteUserData } from '../features/identity/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import { assertVersion } from '../kit/resource/writes.ts'
import { type Office, unlessGone } from './office.ts'

/** Takes a person out of an organization, and out of its teams. */
export const deleteUser = (office: Office): Process<DeleteUserData> =>
  defineProcess(DELETE_USER, [
    {
      name: 'owner',
      run: async ({ userId, isOwner }, originOf) => {
        if (!isOwner) return undefined
        const origin = originOf()
        const command = { type: 'remove', userId, at: formatTime(origin.now) } as const
        return changeOwners(office.log, origin.organizationId, command, origin)
      },
      undo: async ({ userId, isOwner }, originOf) => {
        if (!isOwner) return undefined
        const origin = originOf()
        const command = { type: 'add', userId, at: formatTime(origin.now) } as const
        return changeOwners(office.log, origin.organizationId, command, origin)
      },
    },
    {
      name: 'user',
      run: ({ userId, expectedVersion }, originOf) =>
        unlessGone(
          office.users.remove(originOf(), userId, async ({ status }, version) => {
            if (status === 'live') assertVersion(expectedVersion, version)
          }),
        ),
    },
    { name: 'references', run: async ({ userId }, originOf) => (await office.users.takeOut(originOf(), userId)).wrote },
    {
      name: 'membership',
      run: ({ userId, identityId }, originOf) => {
        const origin = originOf()
        const { organizationId } = origin
        const command = { type: 'endMembership', organizationId, userId, at: formatTime(origin.now) } as const
        return unlessGone(office.people.command(identityId, command, origin))
      },
    },
  ])
