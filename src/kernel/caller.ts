/** An entry of a role that takes fields of one data type away. */
export interface PermissionDetail {
  permissionName: string
  dataTypeId: string
  hiddenFields: string[]
}

/** A signed-in user within one organization, looked up anew at each call. */
export interface UserCaller {
  kind: 'user'
  organizationId: string
  userId: string
  identityId: string
  email: string
  /** The address that they have shown to be theirs; absent until then. */
  verifiedEmail?: string
  /** Id of the token. */
  jti: string
  /** When the token ends, ms since the epoch. */
  expiresAt: number
  roleId: string
  /** Key of a predefined role, otherwise absent. */
  roleKey?: 'owner' | 'admin' | 'planner' | 'fieldUser'
  permissions: ReadonlySet<string>
  permissionDetails: readonly PermissionDetail[]
  /** The hubs the user has; `all` with the permission `view/all-hubs`. */
  hubIds: 'all' | readonly string[]
  teamIds: readonly string[]
  /** The organization asks for a second factor. */
  isSecondFactorRequired?: boolean
  hasSecondFactor?: boolean
}

/** A device that authenticated with its own key. */
export interface TrackerCaller {
  kind: 'tracker'
  organizationId: string
  trackerId: string
}

/** A gateway that speaks for a fleet. */
export interface IngestKeyCaller {
  kind: 'ingestKey'
  organizationId: string
  keyId: string
  /** Unknown external ids make trackers. */
  autoCreate: boolean
  /** Hub of the trackers that it makes. */
  hubId?: string
}

export type Caller = UserCaller | TrackerCaller | IngestKeyCaller

/** Whether nothing is open to the caller but setting up the second factor that their organization asks for. */
export const lacksSecondFactor = (caller: Caller): boolean =>
  caller.kind === 'user' && caller.isSecondFactorRequired === true && caller.hasSecondFactor !== true

/** Whether the caller may see what belongs to these hubs; what has no hub only those see who see all. */
export const seesHubs = (caller: UserCaller, hubIds: readonly string[]): boolean =>
  caller.hubIds === 'all' || hubIds.some((hubId) => (caller.hubIds as readonly string[]).includes(hubId))
