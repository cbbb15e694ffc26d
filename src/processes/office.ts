import type { EventLog } from '../engines/event-log.ts'
import { flow } from '../features/flows/flow.ts'
import { hub } from '../features/hubs/hub.ts'
import type { LinkIssued } from '../features/identity/events.ts'
import { LoginThrottle } from '../features/identity/sign-in/login-throttle.ts'
import { organization } from '../features/identity/organizations/organization.ts'
import { changeOwners } from '../features/identity/owners.ts'
import { People } from '../features/identity/people.ts'
import { role } from '../features/identity/users/role.ts'
import { Sessions } from '../features/identity/sessions/sessions.ts'
import { user } from '../features/identity/users/user.ts'
import { SERVICE_ACCOUNTS_TABLE } from '../features/service-accounts/views.ts'
import { team } from '../features/teams/team.ts'
import { unlessGone } from '../kernel/errors.ts'
import type { JsonObject } from '../kernel/json.ts'
import type { StepOrigin } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import { ResourceWriter } from '../kit/resource/write.ts'

/** Writers for the processes of organizations and users. */
export interface Office {
  log: EventLog
  people: People
  sessions: Sessions
  throttle: LoginThrottle
  organizations: ResourceWriter
  hubs: ResourceWriter
  roles: ResourceWriter
  users: ResourceWriter
  serviceAccounts: ResourceWriter
  teams: ResourceWriter
  flows: ResourceWriter
}

export const officeOf = (services: ResourceServices): Office => ({
  log: services.log,
  people: new People(services),
  sessions: new Sessions(services.log),
  throttle: new LoginThrottle(services.tables, services.keyring),
  organizations: organization.writer(services),
  hubs: hub.writer(services),
  roles: role.writer(services),
  users: user.writer(services),
  serviceAccounts: new ResourceWriter(services.resources.declarationOf(SERVICE_ACCOUNTS_TABLE), services),
  teams: team.writer(services),
  flows: flow.writer(services),
})

/** Creates a record unless it was created before, and possibly changed or deleted since. */
export const ensureMade = async (
  writer: ResourceWriter,
  origin: StepOrigin,
  id: string,
  body: JsonObject,
  extra?: JsonObject,
): Promise<Wrote | undefined> => {
  if ((await writer.load(id)).state.status !== 'absent') return undefined
  return (await writer.create(origin, { ...body, _id: id }, extra)).wrote
}

/** Adds or removes an owner of the organization. @throws Failure conflict if the last owner would leave. */
export const changeOwner = (
  { log }: Pick<Office, 'log'>,
  type: 'add' | 'remove',
  userId: string,
  origin: StepOrigin,
): Promise<Wrote | undefined> =>
  changeOwners(log, origin.organizationId, { type, userId, at: formatTime(origin.now) }, origin)

/** The same request, writing in another organization of the person. */
export const inOrganization = (origin: StepOrigin, organizationId: string): StepOrigin => ({
  ...origin,
  organizationId,
  metadata: { ...origin.metadata, organizationId },
})

/** Does nothing if the person has since been deleted. */
export const issueLink = (
  office: Pick<Office, 'people'>,
  origin: StepOrigin,
  identityId: string,
  link: LinkIssued,
  /** Proofs of the identity at the time of the request. @throws Failure unauthenticated if it now has more. */
  proofs?: number,
): Promise<Wrote | undefined> =>
  unlessGone(office.people.command(identityId, { type: 'issueLink', link, proofs, at: link.at }, origin))

export const endMembership = (
  office: Pick<Office, 'people'>,
  origin: StepOrigin,
  { identityId, userId }: { identityId: string; userId: string },
): Promise<Wrote | undefined> => {
  const { organizationId, now } = origin
  const command = { type: 'endMembership', organizationId, userId, at: formatTime(now) } as const
  return unlessGone(office.people.command(identityId, command, origin))
}
