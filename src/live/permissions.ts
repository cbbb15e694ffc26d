import type { UserCaller } from '../kernel/caller.ts'
import type { ChannelName } from './event-ring.ts'

const PERMISSIONS: { [channel in ChannelName]?: string } = {
  positions: 'view/location-history',
  geofence: 'view/geofence',
  trip: 'view/location-history',
  task: 'view/task',
  automation: 'view/automation',
}

/** Why the caller may not have these channels; undefined when they may. */
export const refusalOf = (channels: Iterable<ChannelName>, caller: UserCaller): string | undefined => {
  for (const channel of channels) {
    const permission = PERMISSIONS[channel]
    if (permission !== undefined && !caller.permissions.has(permission)) return `You lack the permission ${permission}.`
  }
  return undefined
}
