import { CREATE_USER, type CreateUserData } from '../features/identity/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import { changeOwner, endMembership, ensureMade, issueLink, type Office } from './office.ts'
import { joinTeams } from './team-members.ts'

/** Adds a person to an organization: their identity, or a membership of an existing one, then the user. */
export const createUser = (office: Office): Process<CreateUserData> =>
  defineProcess(CREATE_USER, [
    {
      name: 'identity',
      run: ({ userId, identityId, create, insteadOf }, originOf) => {
        const origin = originOf()
        const { organizationId } = origin
        const at = formatTime(origin.now)
        const membership = { organizationId, userId }
        if (create === undefined)
          return office.people.command(identityId, { type: 'addMembership', membership, insteadOf, at }, origin)
        const command = { type: 'create', ...create, originOrganizationId: organizationId, membership, at } as const
        return office.people.command(identityId, command, origin)
      },
      undo: (data, originOf) => endMembership(office, originOf(), data),
    },
    {
      name: 'user',
      run: ({ userId, identityId, values }, originOf) =>
        ensureMade(office.users, originOf(), userId, values, { identityId }),
    },
    {
      name: 'owner',
      run: async ({ userId, isOwner }, originOf) =>
        isOwner ? changeOwner(office, 'add', userId, originOf()) : undefined,
    },
    {
      name: 'invitation',
      run: async ({ identityId, link }, originOf) => link && issueLink(office, originOf(), identityId, link),
    },
    { name: 'teams', run: ({ userId, teamIds }, originOf) => joinTeams(office, originOf, userId, teamIds) },
  ])
