import type { UserCaller } from '../kernel/caller.ts'

export interface Rollout {
  geofenceRollout: readonly string[] | '*'
  staffDomains: readonly string[]
}

/** Whether geofences are there for the caller: by organization, or by the e-mail domain of staff. */
export const inRollout =
  ({ geofenceRollout, staffDomains }: Rollout) =>
  ({ organizationId, email }: UserCaller): boolean =>
    geofenceRollout === '*' ||
    geofenceRollout.includes(organizationId) ||
    staffDomains.includes(email.slice(email.lastIndexOf('@') + 1).toLowerCase())
