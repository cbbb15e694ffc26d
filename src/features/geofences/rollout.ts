import type { UserCaller } from '../../kernel/caller.ts'

/** Whether geofences are enabled for the caller: by organization, or by the domain of a verified address of staff. */
export const inRollout =
  ({ geofenceRollout, staffDomains }: { geofenceRollout: readonly string[] | '*'; staffDomains: readonly string[] }) =>
  ({ organizationId, verifiedEmail = '' }: Pick<UserCaller, 'organizationId' | 'verifiedEmail'>): boolean =>
    geofenceRollout === '*' ||
    geofenceRollout.includes(organizationId) ||
    staffDomains.includes(verifiedEmail.slice(verifiedEmail.lastIndexOf('@') + 1).toLowerCase())
