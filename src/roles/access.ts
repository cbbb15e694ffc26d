import type { Authenticator } from '../features/identity/authenticate.ts'
import type { DeviceAuthenticator } from '../features/trackers/device-authenticator.ts'
import type { AccessChange } from '../ingress/options.ts'
import type { Caller } from '../kernel/caller.ts'

/** One answer to "who is this credential", and one place where changes of access are heard. */
export const openAccess = (users: Authenticator, devices: DeviceAuthenticator) => {
  const listeners = new Set<(change: AccessChange) => void>()
  const tell = (change: AccessChange): void => {
    for (const listener of listeners) listener(change)
  }
  users.onAccessChanged(tell)
  return {
    tell,
    authenticate: (token: string): Promise<Caller> =>
      devices.takes(token) ? devices.authenticate(token) : users.authenticate(token),
    accessChanged: (listener: (change: AccessChange) => void): (() => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
