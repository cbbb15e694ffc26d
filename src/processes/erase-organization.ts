import { unlessGone } from '../kernel/errors.ts'
import { forgottenStream } from '../features/identity/passwords/forgotten.ts'
import { ERASE_ORGANIZATION, type EraseOrganizationData } from '../features/identity/processes.ts'
import type { UserRow } from '../features/identity/users/user.ts'
import { ORGANIZATIONS_TABLE, USERS_TABLE } from '../features/identity/views.ts'
import { eraseHistory } from '../features/locations/erase-history.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { severalAtOnce } from '../kit/commands/several-at-once.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { KeptJobs } from '../kit/jobs/job.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import { bury, buryNotifications, buryRecord } from './bury.ts'
import { deleteJobs } from './delete-jobs.ts'
import { erasePerson } from './erase-person.ts'
import { endMembership, type Office } from './office.ts'

const AT_ONCE = 8

type FormerUser = Pick<UserRow, '_id'> & Partial<Pick<UserRow, 'identityId' | 'email'>>

/** Deleted records of an organization, whose content the log still has. @throws Failure engine_down */
export type DeletedRecords = (organizationId: string) => AsyncIterable<{ noun: string; id: string }>

/** Types of deletion events of records with their own event format, by noun. */
type Deletions = { readonly [noun: string]: string }

interface Erased {
  deletedRecords: DeletedRecords
  deletions: Deletions
  keptJobs: readonly KeptJobs[]
}

/**
 * Removes everything of an organization: its people first, so that nobody adds to it, then its jobs with their files,
 * its records, its history and itself. People in no other organization are erased too. Records created meanwhile are
 * found by a second pass, and records deleted long before by the audit log.
 */
export const eraseOrganization = (
  office: Office,
  services: ResourceServices,
  { deletedRecords, deletions, keptJobs }: Erased,
): Process<EraseOrganizationData> => {
  const people = async (originOf: OriginOf): Promise<void> => {
    const { organizationId } = originOf()
    for (const { id, row } of await rowsOf<UserRow>(services, USERS_TABLE, organizationId))
      await erasePersonHere(office, services, originOf, { ...row, _id: id })
  }
  const records = async (originOf: OriginOf): Promise<void> => {
    const { organizationId } = originOf()
    for (const { noun, plural } of services.resources.all()) {
      if (plural === USERS_TABLE || plural === ORGANIZATIONS_TABLE) continue
      const rows = await rowsOf(services, plural, organizationId)
      await severalAtOnce(rows, AT_ONCE, async ({ id }) => {
        await buryOne(office, deletions, noun, id, originOf)
      })
    }
  }
  const deleted = async (originOf: OriginOf): Promise<void> => {
    const nouns = new Set(services.resources.all().map(({ noun }) => noun))
    for await (const { noun, id } of deletedRecords(originOf().organizationId)) {
      if (noun === 'user') await erasePersonHere(office, services, originOf, await lastOf(office, id))
      else if (nouns.has(noun)) await buryOne(office, deletions, noun, id, originOf)
    }
  }
  const jobs = (originOf: OriginOf) => deleteJobs(office.log, services.tables, keptJobs, originOf)
  return defineProcess(ERASE_ORGANIZATION, [
    { name: 'people', run: async (_data, originOf) => void (await people(originOf)) },
    { name: 'jobs', run: async (_data, originOf) => jobs(originOf) },
    { name: 'deleted ones', run: async (_data, originOf) => void (await deleted(originOf)) },
    { name: 'records', run: async (_data, originOf) => void (await records(originOf)) },
    {
      name: 'late ones',
      run: async (_data, originOf) => {
        await people(originOf)
        await jobs(originOf)
        await records(originOf)
        return undefined
      },
    },
    {
      name: 'history',
      run: async (_data, originOf) => {
        const { organizationId, metadata } = originOf()
        await eraseHistory(office.log, { organizationId }, metadata)
        return undefined
      },
    },
    {
      name: 'organization',
      run: async (_data, originOf) => {
        const origin = originOf()
        await office.log.erase(`owners-${origin.organizationId}`)
        return buryRecord(office.log, 'organization', origin.organizationId, origin)
      },
    },
  ])
}

/** Present ids and rows: buried rows leave the table under a reader. */
const rowsOf = async <R extends { [field: string]: unknown }>(
  { tables }: ResourceServices,
  table: string,
  organizationId: string,
): Promise<{ id: string; row: R }[]> => {
  const rows: { id: string; row: R }[] = []
  for await (const { id, row } of tables.scan<R>(table, organizationId)) rows.push({ id, row })
  return rows
}

/** Last state of a user; without an identity if they are erased. */
const lastOf = async ({ users }: Office, id: string): Promise<FormerUser> => {
  const { identityId, email } = (await users.load(id)).state.values as Partial<UserRow>
  return { _id: id, identityId, email }
}

/** The user goes last: a resumed process finds the person by it. */
const erasePersonHere = async (
  office: Office,
  { keyring }: ResourceServices,
  originOf: OriginOf,
  { _id: userId, identityId, email: lastEmail = '' }: FormerUser,
): Promise<void> => {
  if (identityId === undefined) return
  const { log, people } = office
  const origin = originOf(userId)
  const { organizationId, now } = origin
  const email = (await people.load(identityId))?.state.email ?? lastEmail
  await endMembership(office, originOf(`membership ${userId}`), { identityId, userId })
  const endFounding = { type: 'endFounding', organizationId, at: formatTime(now) } as const
  await unlessGone(people.command(identityId, endFounding, originOf(`founding ${userId}`)))
  await erasePerson(office, identityId, forgottenStream(keyring, email), originOf)
  await buryNotifications(log, userId, originOf(`notifications ${userId}`))
  await buryRecord(log, 'user', userId, origin)
}

const buryOne = ({ log }: Office, deletions: Deletions, noun: string, id: string, originOf: OriginOf) => {
  const origin = originOf(`${noun} ${id}`)
  const { organizationId, now: at } = origin
  if (!Object.hasOwn(deletions, noun)) return buryRecord(log, noun, id, origin)
  return bury(log, `${noun}-${id}`, { type: deletions[noun], data: { organizationId, at } }, origin)
}
