import type { UserCaller } from '../../src/kernel/caller.ts'
import { liveChannel } from '../../src/live/client.ts'
import type { LiveHub } from '../../src/live/hub.ts'

/** Looks at positions of an organization every 20 ms, as a dashboard does; `onText` is called with each message. */
export const lookAt = (
  hub: LiveHub,
  organizationId: string,
  part: { bbox?: readonly number[]; trackerIds?: readonly string[] },
  onText: (text: string) => void,
): void => {
  const caller = {
    kind: 'user',
    organizationId,
    userId: 'u',
    permissions: new Set(['view/location-history', 'view/tracker']),
    permissionDetails: [],
    hubIds: 'all',
    teamIds: [],
  } as unknown as UserCaller
  const socket = {
    address: '',
    bufferedBytes: () => 0,
    close: (code: number, reason: string) => {
      throw new Error(`${code} ${reason}`)
    },
    send: (text: string) => {
      onText(text)
      return 0
    },
  }
  const message = { type: 'subscribe', id: 'v', ...part, channels: ['positions'], interval: 20 }
  const connection = liveChannel(hub, () => true).open(socket, caller)
  connection.message(new Uint8Array(Buffer.from(JSON.stringify(message))).buffer, false)
}
