import { geofence, type GeofenceCommand } from '../../src/features/geofences/geofence.ts'
import { geofenceStream } from '../../src/features/geofences/events.ts'
import { role } from '../../src/features/identity/users/role.ts'
import { tracker } from '../../src/features/trackers/declaration.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { handleCommand } from '../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import { FENCES, FIRST_FENCES, GOING_ROLE, HEIR_ROLE, ORGANIZATION, PLACES, valuesOf } from './fleet.ts'
import { BEGUN_MS, type Timeline } from './timeline.ts'
import type { Asking } from './told.ts'

const NAMES = 4

/** Moves a fence, or takes it out of use or back in, whatever it is by now or as the version that was seen. */
export const moveFence = (
  clients: Asking,
  timeline: Timeline,
  fence = timeline.between(0, FENCES.length - 1),
  expectedVersion?: number,
): void => ask(clients, timeline, fence, valuesCommand('change', fence, timeline), expectedVersion)

export const createFence = (clients: Asking, timeline: Timeline): void => {
  const fence = timeline.between(FIRST_FENCES, FENCES.length - 1)
  ask(clients, timeline, fence, valuesCommand('create', fence, timeline))
}

export const deleteFence = (clients: Asking, timeline: Timeline): void => {
  const at = BEGUN_MS + Math.floor(timeline.nowMs)
  ask(clients, timeline, timeline.between(0, FENCES.length - 1), { kind: 'delete', organizationId: ORGANIZATION, at })
}

const valuesCommand = (kind: 'create' | 'change', fence: number, timeline: Timeline): GeofenceCommand => {
  const reach = { place: timeline.between(0, PLACES - 1), isWide: timeline.chance(0.5) }
  const at = BEGUN_MS + Math.floor(timeline.nowMs)
  return { kind, organizationId: ORGANIZATION, values: valuesOf(fence, reach, timeline.chance(0.9)), at }
}

/** Asks until it is answered, and notes what was said of it. */
const ask = (
  clients: Asking,
  timeline: Timeline,
  fence: number,
  command: GeofenceCommand,
  expectedVersion?: number,
): void => {
  const seed = Buffer.from(`edit ${timeline.between(0, 1e9)}`)
  const stream = geofenceStream(FENCES[fence])
  const eventId = idSource(command.at, seed, true).next()
  clients.ask(
    ({ services }) => {
      const context = { ids: idSource(command.at, seed, true), metadata: {}, expectedVersion }
      return handleCommand(services!.log, stream, geofence, command, context)
    },
    (answer) => {
      if (answer === 'refused') clients.told.refused.set(eventId, stream)
      else if (answer !== 'pointless' && answer.wrote !== undefined)
        clients.told.edits.set(eventId, { stream, revision: answer.version - 1 })
      clients.open--
    },
    (error: unknown) => (error instanceof Failure ? REFUSALS[error.code] : undefined),
  )
}

/** A fence that is not there, or is already, may be so by this very command, whose first answer was lost. */
const REFUSALS: { [code: string]: 'refused' | 'pointless' } = {
  stale_version: 'refused',
  not_found: 'pointless',
  conflict: 'pointless',
}

/** Several people see the same version of a fence, and each edits it as that: one of them may. */
export const contest = (clients: Asking, timeline: Timeline): void => {
  const fence = timeline.between(0, FENCES.length - 1)
  const see = ({ services }: { services: { log: { head(stream: string): Promise<number> } } | undefined }) =>
    services!.log.head(geofenceStream(FENCES[fence]))
  clients.ask(see, (head) => {
    const rivals = timeline.between(2, 3)
    clients.open += rivals - 1
    for (let i = 0; i < rivals; i++) moveFence(clients, timeline, fence, head + 1)
  })
}

/** Deletes a tracker; what it sends afterwards makes it again. */
export const deleteTracker = (clients: Asking, timeline: Timeline, trackerId: string): void => {
  const now = BEGUN_MS + Math.floor(timeline.nowMs)
  const seed = Buffer.from(`tracker ${timeline.between(0, 1e9)}`)
  clients.ask(
    async ({ services }) => {
      const origin = { organizationId: ORGANIZATION, now, ids: idSource(now, seed, true), metadata: {} }
      await tracker.writer(services!).remove(origin, trackerId)
    },
    () => void clients.open--,
    (error: unknown) => (error instanceof Failure && error.code === 'not_found' ? 'pointless' : undefined),
  )
}

/** Deletes a role that users have; another one takes its place. */
export const replaceRole = (clients: Asking, timeline: Timeline): void => {
  const now = BEGUN_MS + Math.floor(timeline.nowMs)
  const seed = Buffer.from('going role')
  clients.ask(
    async ({ services }) => {
      const origin = { organizationId: ORGANIZATION, now, ids: idSource(now, seed, true), metadata: {} }
      await role.writer(services!).delete(origin, { id: GOING_ROLE, replaceWith: HEIR_ROLE })
    },
    () => {
      clients.told.isRoleReplaced = true
      clients.open--
    },
    (error: unknown) => (error instanceof Failure && error.code === 'not_found' ? 'done before' : undefined),
  )
}

/** Makes a role with one of a few names, which one role at a time may have. */
export const makeRole = (clients: Asking, timeline: Timeline, number: number): void => {
  const name = `Role ${timeline.between(1, NAMES)}`
  const id = idFrom('simulated', 'role', number)
  const now = BEGUN_MS + Math.floor(timeline.nowMs)
  const seed = Buffer.from(`role ${id}`)
  const body = { _id: id, name, permissions: [], permissionDetails: [] }
  clients.ask(
    async ({ services }) => {
      const origin = { organizationId: ORGANIZATION, now, ids: idSource(now, seed, true), metadata: {} }
      await role.writer(services!).create(origin, body)
      return true
    },
    (isMade) => {
      if (isMade) clients.told.roles.set(id, name)
      clients.open--
    },
    // Another role has the name.
    (error: unknown) =>
      error instanceof Failure && ['invalid', 'key_in_use'].includes(error.code) ? false : undefined,
  )
}
