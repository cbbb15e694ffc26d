import { automationStream, AUTOMATION_CREATED } from '../../src/features/automations/events.ts'
import { newSecret, sealDetails, sealSecret } from '../../src/features/automations/sealed.ts'
import { GEOFENCE_CREATED, geofenceStream, GROUP_CREATED, groupStream } from '../../src/features/geofences/events.ts'
import { PERMISSIONS } from '../../src/features/identity/users/predefined-roles.ts'
import { encodeJson } from '../../src/kernel/event.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { keyring } from './host.ts'
import type { MemoryLog } from './memory-log.ts'
import { BEGUN_MS } from './timeline.ts'

export const ORGANIZATION = idFrom('simulated', 'organization')
export const EDITOR = idFrom('simulated', 'editor')
const ROLE = idFrom('simulated', 'role')
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
  const identityId = idFrom('simulated', 'identity')
  make('user', EDITOR, {
    name: 'Editor',
    email: 'e@example.com',
    status: 'active',
    roleId: ROLE,
    identityId,
    hubId: [],
  })
  write(groupStream(GROUP), GROUP_CREATED, {
    organizationId,
    values: { name: 'Group' },
    createdAt: new Date(at).toISOString(),
    at: new Date(at).toISOString(),
  })
  for (const [i, id] of FENCES.slice(0, FIRST_FENCES).entries())
    write(geofenceStream(id), GEOFENCE_CREATED, { organizationId, ...valuesOf(i, { place: 1 + i, isWide: false }), at })
  for (const event of ['onGeofenceEntry', 'onGeofenceLeave']) {
    const _id = idFrom('simulated', event)
    const fields = { geofenceGroupId: GROUP }
    const content = {
      name: event,
      event,
      dataType: 'transition',
      automationType: 'webhook',
      details: sealDetails(keyring, { url: 'http://receiver.example/', headers: [] }),
      rules: { fields, schema: {} },
      isActive: true,
    }
    const secret = sealSecret(keyring, newSecret(keyring, _id))
    write(automationStream(_id), AUTOMATION_CREATED, { _id, organizationId, content, secret, editorId: EDITOR, at })
  }
}
