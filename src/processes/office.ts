import type { EventLog } from '../engines/event-log.ts'
import type { LinkIssued } from '../features/identity/events.ts'
import { changeOwners } from '../features/identity/owners.ts'
import type { People } from '../features/identity/people.ts'
import type { Sessions } from '../features/identity/sessions.ts'
import { Failure } from '../kernel/errors.ts'
import type { JsonObject } from '../kernel/json.ts'
import type { StepOrigin } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { ResourceWriter } from '../kit/resource/write.ts'

/** What the processes of organizations and users write with. */
export interface Office {
  log: EventLog
  people: People
  sessions: Sessions
  organizations: ResourceWriter
  hubs: ResourceWriter
  roles: ResourceWriter
  users: ResourceWriter
  teams: ResourceWriter
  flows: ResourceWriter
}

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

/** Nothing happens where the person is gone meanwhile. */
export const issueLink = (
  office: Pick<Office, 'people'>,
  origin: StepOrigin,
  identityId: string,
  link: LinkIssued,
): Promise<Wrote | undefined> =>
  unlessGone(office.people.command(identityId, { type: 'issueLink', link, at: link.at }, origin))

/** Ends every session of somebody whose password was set anew. */
export const endSessions = async (
  { sessions }: Pick<Office, 'sessions'>,
  { identityId, passwordHash }: { identityId: string; passwordHash?: string },
  origin: StepOrigin,
): Promise<Wrote | undefined> =>
  passwordHash === undefined ? undefined : sessions.endAll(identityId, { at: formatTime(origin.now) }, origin)

/** What to do about something that is gone meanwhile: nothing. */
export const unlessGone = async (write: Promise<Wrote | undefined>): Promise<Wrote | undefined> => {
  try {
    return await write
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined
    throw error
  }
}
