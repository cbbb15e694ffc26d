import { unlessGone } from '../kernel/errors.ts'
import { erasedThrough, eraseHistory } from '../features/locations/erase-history.ts'
import { DELETE_USER, type DeleteUserData } from '../features/identity/processes.ts'
import { defineProcess, type OriginOf, type Process } from '../kit/commands/process.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import type { Wrote } from '../kit/http/route.ts'
import { assertVersion } from '../kit/resource/writes.ts'
import { buryNotifications, buryRecord } from './bury.ts'
import { erasePerson } from './erase-person.ts'
import { changeOwner, endMembership, type Office } from './office.ts'

/** Removes a person from an organization and its teams; with erasure, nothing of them remains. */
export const deleteUser = (office: Office): Process<DeleteUserData> =>
  defineProcess(DELETE_USER, [
    {
      name: 'owner',
      run: async ({ userId, isOwner }, originOf) =>
        isOwner ? changeOwner(office, 'remove', userId, originOf()) : undefined,
      undo: async ({ userId, isOwner }, originOf) =>
        isOwner ? changeOwner(office, 'add', userId, originOf()) : undefined,
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
    { name: 'membership', run: (data, originOf) => endMembership(office, originOf(), data) },
    {
      name: 'notifications',
      run: ({ userId }, originOf) => buryNotifications(office.log, userId, originOf('notifications')),
    },
    { name: 'phones', run: (data, originOf) => erasePhones(office, data, originOf) },
    { name: 'erasure', run: (data, originOf) => eraseUser(office, data, originOf) },
  ])

const erasePhones = async (
  { log }: Office,
  { erase }: DeleteUserData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  const wrotes: (Wrote | undefined)[] = []
  for (const trackerId of erase?.phoneIds ?? []) {
    const origin = originOf(trackerId)
    const { organizationId, now, metadata } = origin
    wrotes.push(await buryRecord(log, 'tracker', trackerId, origin))
    await eraseHistory(log, { organizationId, trackerId, through: erasedThrough(now) }, metadata)
  }
  return allWrote(...wrotes)
}

/** Erases the user, and the person if they are in no other organization. */
const eraseUser = async (
  office: Office,
  { userId, identityId, erase }: DeleteUserData,
  originOf: OriginOf,
): Promise<Wrote | undefined> => {
  if (erase === undefined) return undefined
  const wrote = await buryRecord(office.log, 'user', userId, originOf('user'))
  return allWrote(wrote, await erasePerson(office, identityId, erase.forgotten, originOf))
}
