import type { UserCaller } from '../kernel/caller.ts'
import type { ChannelName } from './live-event.ts'

const PERMISSIONS: { [channel in ChannelName]?: string } = {
  geofence: 'view/geofence',
  task: 'view/task',
  automation: 'view/automation',
}

/** Users without the permission get events of their own phone; programs have none. */
const OWN: readonly ChannelName[] = ['positions', 'trip']

/** Reason why the caller may not have these channels; undefined when they may. */
export const refusalOf = (channels: Iterable<ChannelName>, caller: UserCaller): string | undefined => {
  for (const channel of channels) {
    const isOwn = OWN.includes(channel)
    const permission = isOwn && caller.isService === true ? 'view/location-history' : PERMISSIONS[channel]
    if (permission !== undefined && !caller.permissions.has(permission)) return `You lack the permission ${permission}.`
  }
  return undefined
}

/** The attributes of a caller that decide which tasks they see. */
export const taskSight = ({ hubIds, teamIds, permissions }: UserCaller): string =>
  JSON.stringify([hubIds, teamIds, permissions.has('dispatch/task')])
