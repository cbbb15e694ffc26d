/** An entry of a role that takes fields of one data type away. */
export interface PermissionDetail {
  permissionName: string
  dataTypeId: string
  hiddenFields: string[]
}

/** A signed-in user within one organization, or a service account, looked up anew at each call. */
export interface UserCaller {
  kind: 'user'
  organizationId: string
  /** Id of the user or of the service account. */
  userId: string
  /** A program with a key: it does not sign in and has neither notifications nor a phone. */
  isService?: true
  /** When the service account ends, ms since the epoch. */
  endsAt?: number
  identityId: string
  email: string
  /** Address that the user has confirmed; absent until then. */
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
  /** Time from which the organization requires a second factor that the user lacks; ms since the epoch. */
  secondFactorDueMs?: number
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

/** Kind of the presented credential. */
export type CredentialKind = Caller['kind'] | 'service'

export const credentialKindOf = (caller: Caller): CredentialKind =>
  caller.kind === 'user' && caller.isService === true ? 'service' : caller.kind

/** Whether the caller may only set up the second factor that their organization requires. */
export const lacksSecondFactor = (caller: Caller): boolean =>
  caller.kind === 'user' && caller.isSecondFactorRequired === true && caller.hasSecondFactor !== true

/** Whether holders of the role have every hub. An owner's role has every permission, also those that came after it was stored. */
export const hasAllHubs = (role: { key?: unknown; permissions?: unknown } | undefined): boolean =>
  role?.key === 'owner' || (Array.isArray(role?.permissions) && role.permissions.includes('view/all-hubs'))

/** Whether the caller may see records of these hubs; only callers with all hubs see records without one. */
export const seesHubs = (caller: UserCaller, hubIds: readonly string[]): boolean =>
  caller.hubIds === 'all' || hubIds.some((hubId) => (caller.hubIds as readonly string[]).includes(hubId))
