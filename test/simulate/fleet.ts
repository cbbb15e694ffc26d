import { automationStream, AUTOMATION_CREATED } from '../../src/features/automations/events.ts'
import { newSecret, sealDetails, sealSecret } from '../../src/features/automations/sealed.ts'
import { GEOFENCE_CREATED, geofenceStream, GROUP_CREATED, groupStream } from '../../src/features/geofences/events.ts'
import { PERMISSIONS } from '../../src/features/identity/users/predefined-roles.ts'
import type { JsonObject } from '../../src/kernel/json.ts'
import { encodeJson } from '../../src/kernel/event.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { keyring } from './host.ts'
import type { MemoryLog } from './memory-log.ts'
import { BEGUN_MS } from './timeline.ts'

export const ORGANIZATION = idFrom('simulated', 'organization')
export const EDITOR = idFrom('simulated', 'editor')
export const ROLE = idFrom('simulated', 'role')
export const IDENTITY = idFrom('simulated', 'identity')
/** A role that people delete, and the one that its users get. */
export const GOING_ROLE = idFrom('simulated', 'role', 'going')
export const HEIR_ROLE = idFrom('simulated', 'role', 'heir')
export const USERS = [0, 1, 2].map((i) => idFrom('simulated', 'user', i))
const HUB = idFrom('simulated', 'hub')
/** Tasks of the first one come from schedules; each has an automation make one of the second. */
export const FLOWS = ['first', 'second'].map((name) => idFrom('simulated', 'flow', name))
/** When tasks of schedules are due, in ms after the beginning. */
export const DUE_MS = [7_000, 11_000, 19_000]
const GROUP = idFrom('simulated', 'group')
export const FENCES = [0, 1, 2, 3, 4, 5].map((i) => idFrom('simulated', 'fence', i))
/** Those that were there the day before. */
export const FIRST_FENCES = 2
/** Places that trackers go to, a kilometre apart. */
export const PLACES = 5
const PLACE_DEGREES = 0.01
/** Reaches the place that it is at, and the two beside it where it is wide. */
const NARROW_METRES = 300
const WIDE_METRES = 1_400

export const positionOf = (place: number): { lat: number; lng: number } => ({ lat: 0, lng: place * PLACE_DEGREES })

/** Where a fence is, as the model has it: places that are in it. */
export interface Reach {
  place: number
  isWide: boolean
}

export const isIn = (place: number, { place: centre, isWide }: Reach): boolean =>
  Math.abs(place - centre) <= (isWide ? 1 : 0)

export const shapeOf = ({ place, isWide }: Reach) => ({
  center: positionOf(place),
  radius: isWide ? WIDE_METRES : NARROW_METRES,
})

/** What `shapeOf` was made of. */
export const reachOf = ({ center, radius }: ReturnType<typeof shapeOf>): Reach => ({
  place: Math.round(center.lng / PLACE_DEGREES),
  isWide: radius > NARROW_METRES,
})

export const valuesOf = (fence: number, reach: Reach, isActive = true) => ({
  name: `Fence ${fence}`,
  geofenceGroupId: GROUP,
  isActive,
  shape: shapeOf(reach),
})

/** An organization with two fences and an automation for each kind of transition, as a day before left it. */
export const writeFleet = (log: MemoryLog): void => {
  const at = BEGUN_MS - 86_400_000
  const organizationId = ORGANIZATION
  const write = (stream: string, type: string, data: object): void => {
    const event = { id: idFrom(stream), type, data: encodeJson(data), isJson: true, metadata: { organizationId } }
    log.append(stream, [event], 'none')
  }
  const make = (noun: string, id: string, values: object): void => {
    const createdAt = new Date(at).toISOString()
    write(`${noun}-${id}`, `${noun}Created`, { organizationId, values, createdAt, at: createdAt })
  }
  make('organization', ORGANIZATION, { name: 'Simulated' })
  make('role', ROLE, { name: 'Owner', key: 'owner', permissions: PERMISSIONS, permissionDetails: [] })
  const identityId = IDENTITY
  const makeUser = (id: string, name: string, roleId: string): void =>
    make('user', id, { name, email: `${name}@example.com`, status: 'active', roleId, identityId, hubId: [] })
  makeUser(EDITOR, 'Editor', ROLE)
  make('role', GOING_ROLE, { name: 'Going', permissions: [], permissionDetails: [] })
  make('role', HEIR_ROLE, { name: 'Heir', permissions: [], permissionDetails: [] })
  for (const id of USERS) makeUser(id, id, GOING_ROLE)
  make('hub', HUB, { name: 'Hub' })
  const steps = [{ id: 's', name: 'Step', components: [] }]
  for (const id of FLOWS) make('flow', id, { name: id, isActive: true, needsDataType: false, steps, dataTypeIds: [] })
  for (const dueMs of DUE_MS) make('schedule', idFrom('simulated', 'schedule', dueMs), scheduleAt(BEGUN_MS + dueMs))
  write(groupStream(GROUP), GROUP_CREATED, {
    organizationId,
    values: { name: 'Group' },
    createdAt: new Date(at).toISOString(),
    at: new Date(at).toISOString(),
  })
  for (const [i, id] of FENCES.slice(0, FIRST_FENCES).entries())
    write(geofenceStream(id), GEOFENCE_CREATED, { organizationId, ...valuesOf(i, { place: 1 + i, isWide: false }), at })
  const automate = (event: string, automationType: string, details: JsonObject, fields: object): void => {
    const _id = idFrom('simulated', event, automationType)
    const content = {
      ...{ name: `${event} ${automationType}`, event, dataType: 'any', automationType, isActive: true },
      details: sealDetails(keyring, details),
      rules: { fields, schema: {} },
    }
    const secret = sealSecret(keyring, newSecret(keyring, _id))
    write(automationStream(_id), AUTOMATION_CREATED, { _id, organizationId, content, secret, editorId: EDITOR, at })
  }
  const receiver = { url: 'http://receiver.example/', headers: [] }
  for (const event of ['onGeofenceEntry', 'onGeofenceLeave'])
    automate(event, 'webhook', receiver, { geofenceGroupId: GROUP })
  for (const event of ['onTaskCreated', 'onStartTrip', 'onFinishTrip']) automate(event, 'webhook', receiver, {})
  automate('onTaskCreated', 'notification', { channel: 'inApp', to: EDITOR, text: 'A task' }, {})
  automate(
    'onTaskCreated',
    'createTask',
    { flowId: FLOWS[1], hubId: HUB, task: { title: 'Second' } },
    { 'task.flowId': FLOWS[0] },
  )
}

/** Values of a schedule that makes one task. */
const scheduleAt = (dueMs: number): JsonObject => {
  const due = new Date(dueMs).toISOString()
  return {
    ...{ name: due, flowId: FLOWS[0], rrule: 'FREQ=DAILY;COUNT=1', timeZone: 'UTC', startTime: due, nextAt: due },
    ...{ isActive: true, hubId: HUB, assigneeIds: [], task: { title: 'First' } },
  }
}
