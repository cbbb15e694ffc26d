import type { UserCaller } from '../kernel/caller.ts'
import type { Channel } from '../kit/http/channel.ts'
import type { LiveHub } from './hub.ts'
import { LiveClient } from './live-client.ts'

/** The channel /live: positions and events, at each client's pace. */
export const liveChannel = (hub: LiveHub, inRollout: (caller: UserCaller) => boolean): Channel => ({
  path: '/live',
  accepts: ['user'],
  open: (socket, caller) => new LiveClient(hub, socket, caller as UserCaller, inRollout),
})
