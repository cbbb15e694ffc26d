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
import { team } from '../features/teams/team.ts'
import { Failure } from '../kernel/errors.ts'
import type { JsonObject } from '../kernel/json.ts'
import type { StepOrigin } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import type { ResourceWriter } from '../kit/resource/write.ts'

/** What the processes of organizations and users write with. */
export interface Office {
  log: EventLog
  people: People
  sessions: Sessions
  throttle: LoginThrottle
  organizations: ResourceWriter
  hubs: ResourceWriter
  roles: ResourceWriter
  users: ResourceWriter
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
  teams: team.writer(services),
  flows: flow.writer(services),
})

/** Makes a record unless it was made before, and possibly changed or deleted since. */
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

/** Makes somebody an owner of the organization, or no longer one. @throws Failure conflict when the last owner would go. */
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

/** Nothing happens where the person is gone meanwhile. */
export const issueLink = (
  office: Pick<Office, 'people'>,
  origin: StepOrigin,
  identityId: string,
  link: LinkIssued,
  /** How many proofs the identity had when it was asked for. @throws Failure unauthenticated where it now has more. */
  proofs?: number,
): Promise<Wrote | undefined> =>
  unlessGone(office.people.command(identityId, { type: 'issueLink', link, proofs, at: link.at }, origin))

/** What to do about something that is gone meanwhile: nothing. */
export const unlessGone = async (write: Promise<Wrote | undefined>): Promise<Wrote | undefined> => {
  try {
    return await write
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined
    throw error
  }
}
