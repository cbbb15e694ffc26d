/**
 * Streams: `identity-<id>` (a person's e-mail, password and memberships), `identity-by-<hash>` (claim on an e-mail),
 * `sessions-<identity>` (tokens issued and revoked, until they would have ended), `owners-<organization>`, and the declared resources `organization-`, `user-` and `role-`.
 */
export const IDENTITY = {
  created: 'identityCreated',
  deleted: 'identityDeleted',
  membershipAdded: 'membershipAdded',
  membershipEnded: 'membershipEnded',
  organizationAccessed: 'organizationAccessed',
  organizationFounded: 'organizationFounded',
  /** The organization that they made is gone, or never came to be. */
  foundingEnded: 'foundingEnded',
  passwordChanged: 'passwordChanged',
  emailChanged: 'emailChanged',
  /** The owner followed a link that was mailed to the address, or signed in with it elsewhere. */
  emailVerified: 'emailVerified',
  /** In logs of before sessions; now in theirs. */
  tokenRevoked: 'tokenRevoked',
  linkIssued: 'linkIssued',
  linkFollowed: 'linkFollowed',
  emailChangeCancelled: 'emailChangeCancelled',
  factorOffered: 'secondFactorOffered',
  factorConfirmed: 'secondFactorConfirmed',
  factorRemoved: 'secondFactorRemoved',
  recoveryCodesReplaced: 'recoveryCodesReplaced',
  recoveryCodeUsed: 'recoveryCodeUsed',
  /** Changes nothing: the log refuses decisions on what stood before. */
  fenced: 'identityFenced',
} as const

/** Times are RFC 3339. A password is only ever here as its argon2id hash. */
export interface IdentityCreated {
  email: string
  name: string
  passwordHash: string
  /** The organization where the identity was first created. */
  originOrganizationId: string
  at: string
}

export interface MembershipAdded {
  organizationId: string
  userId: string
  at: string
}

export interface MembershipEnded {
  organizationId: string
  at: string
}

export interface OrganizationAccessed {
  organizationId: string
  at: string
}

/** Also of the end of a founding. */
export interface OrganizationFounded {
  organizationId: string
  at: string
}

export interface PasswordChanged {
  passwordHash: string
  /** The organization whose administrator set it: it opens that one alone; null: all of them. Left out when users change their own. */
  opensOnly?: string | null
  at: string
}

export interface EmailChanged {
  email: string
  /** The organization whose administrator changed it: those that the person was in besides stay closed. */
  bindsTo?: string
  at: string
}

export interface EmailVerified {
  email: string
  at: string
}

/** A secret that counts once a code of it was given. */
export interface FactorOffered {
  factorId: string
  /** The secret of the codes, encrypted. */
  sealedSecret: string
  expiresAt: string
  at: string
}

export interface FactorConfirmed {
  factorId: string
  /** Keyed hashes of the recovery codes. */
  recoveryHashes: readonly string[]
  at: string
}

export interface FactorRemoved {
  /** The organization whose administrator did it: the password opens that one alone from then on. */
  opensOnly?: string
  at: string
}

export interface RecoveryCodesReplaced {
  recoveryHashes: readonly string[]
  at: string
}

export interface RecoveryCodeUsed {
  hash: string
  at: string
}

export const SESSION_STREAMS = 'sessions-'
export const SESSION = { began: 'sessionBegan', ended: IDENTITY.tokenRevoked } as const

/** A token was issued. */
export interface SessionBegan {
  jti: string
  organizationId: string
  userId: string
  /** The client's. */
  address: string
  /** Another service said who it is; no password was given. */
  isByProvider?: boolean
  /** The session of a browser, kept by a cookie: tokens are issued for it. */
  isBrowser?: boolean
  /** The session of a browser that the token was issued for, and ends with. */
  browserId?: string
  expiresAt: string
  at: string
}

export interface TokenRevoked {
  jti: string
  organizationId: string
  userId: string
  /** When the token would have ended. */
  expiresAt: string
  /** How long sockets that were opened with it stay open. */
  graceMs: number
  at: string
}

/**
 * What a link that is mailed is for: `reopening` ends what a password that an administrator set leaves closed,
 * `emailChange` goes to the new address; `emailUndo` goes to the old one, follows from an `emailChange` and is never issued.
 */
export type LinkKind = 'invitation' | 'verification' | 'reset' | 'reopening' | 'emailChange' | 'emailUndo'

/** A link that is to be mailed. Its secret follows from the ids and the keyring, so it stands nowhere. */
export interface LinkIssued {
  linkId: string
  kind: LinkKind
  /** Address that it is mailed to. */
  email: string
  /** For an invitation the one invited to, otherwise the one where it was asked for. */
  organizationId?: string
  userId?: string
  /** The user who asked for it, where that is somebody else. */
  askedBy?: string
  /** For an e-mail that an administrator chose: followed without the owner's password, it opens this organization alone. */
  bindsTo?: string
  /** Whether its mail may go was decided before it was issued. */
  isCounted?: boolean
  /** The operator of the installation hands it over: it is not mailed. */
  isHandedOver?: boolean
  /** Following it removes the second factor with the password. */
  endsFactor?: boolean
  /** A reopening that is due since an administrator took the second factor off, not the password. */
  isForFactor?: boolean
  expiresAt: string
  at: string
}

export interface LinkFollowed {
  linkId: string
  /** Tells apart the command that followed it, and its repetition, from others. */
  useId: string
  at: string
}

/** Streams of those who forgot their password, one for each address, whether anybody has it or not. */
export const FORGOTTEN_STREAMS = 'forgotten-'

export const PASSWORD_FORGOTTEN = 'passwordForgotten'

export interface PasswordForgotten {
  /** The address as it was typed, encrypted. */
  sealedEmail: string
  at: string
}

export const OWNER = { added: 'ownerAdded', removed: 'ownerRemoved' } as const

export interface OwnerEvent {
  userId: string
  at: string
}
