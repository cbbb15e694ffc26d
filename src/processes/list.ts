import { flow } from '../features/flows/flow.ts'
import { hub } from '../features/hubs/hub.ts'
import { organization } from '../features/identity/organization.ts'
import { People } from '../features/identity/people.ts'
import { Sessions } from '../features/identity/sessions.ts'
import { role } from '../features/identity/role.ts'
import { user } from '../features/identity/user.ts'
import { team } from '../features/teams/team.ts'
import type { Process } from '../kit/commands/process.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import { acceptInvitation } from './accept-invitation.ts'
import { changeFactor } from './change-factor.ts'
import { changeUser } from './change-user.ts'
import { createUser } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { type DeletedRecords, eraseOrganization } from './erase-organization.ts'
import { followLink } from './follow-link.ts'
import { foundOrganization } from './found-organization.ts'
import { giveWay } from './give-way.ts'
import { makeHub } from './make-hub.ts'
import type { Office } from './office.ts'

/** Every command that writes several streams as facts that anyone carries on. */
// biome-ignore lint/suspicious/noExplicitAny: each kind has its own data, which only its steps look into
export const listProcesses = (services: ResourceServices, deletedRecords: DeletedRecords): Process<any>[] => {
  const office: Office = {
    log: services.log,
    people: new People(services),
    sessions: new Sessions(services.log),
    organizations: organization.writer(services),
    hubs: hub.writer(services),
    roles: role.writer(services),
    users: user.writer(services),
    teams: team.writer(services),
    flows: flow.writer(services),
  }
  return [
    foundOrganization(office),
    createUser(office),
    changeUser(office),
    deleteUser(office),
    acceptInvitation(office),
    followLink(office),
    changeFactor(office),
    eraseOrganization(office, services, deletedRecords),
    giveWay(services),
    makeHub(office),
  ]
}
