/**
 * Streams: `identity-<id>` (a person's e-mail, password and memberships), `identity-by-<hash>` (claim on an e-mail),
 * `sessions-<identity>` (tokens issued and revoked, until they would have ended), `owners-<organization>`, and the
 * declared resources `organization-`, `user-` and `role-`.
 */
export const IDENTITY = {
  created: 'identityCreated',
  deleted: 'identityDeleted',
  membershipAdded: 'membershipAdded',
  membershipEnded: 'membershipEnded',
  organizationAccessed: 'organizationAccessed',
  organizationFounded: 'organizationFounded',
  /** An organization that they created was deleted, or never completed. */
  foundingEnded: 'foundingEnded',
  passwordChanged: 'passwordChanged',
  emailChanged: 'emailChanged',
  /** The owner followed a link mailed to the address, or signed in with it elsewhere. */
  emailVerified: 'emailVerified',
  /** Only in older logs; now in the stream of sessions. */
  tokenRevoked: 'tokenRevoked',
  linkIssued: 'linkIssued',
  linkFollowed: 'linkFollowed',
  emailChangeCancelled: 'emailChangeCancelled',
  factorOffered: 'secondFactorOffered',
  factorConfirmed: 'secondFactorConfirmed',
  factorRemoved: 'secondFactorRemoved',
  recoveryCodesReplaced: 'recoveryCodesReplaced',
  recoveryCodeUsed: 'recoveryCodeUsed',
  /** Changes nothing: makes the log refuse decisions on older state. */
  fenced: 'identityFenced',
} as const

/** Times are RFC 3339. Passwords appear only as argon2id hashes. */
export interface IdentityCreated {
  email: string
  name: string
  passwordHash: string
  /** Organization in which the identity was first created. */
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

/** Also used for the end of a founding. */
export interface OrganizationFounded {
  organizationId: string
  at: string
}

export interface PasswordChanged {
  passwordHash: string
  /** Organization whose administrator set it, the only one it opens; null: all. Absent if users change their own. */
  opensOnly?: string | null
  at: string
}

export interface EmailChanged {
  email: string
  /** Organization whose administrator changed it: the person's other organizations stay closed. */
  bindsTo?: string
  at: string
}

export interface EmailVerified {
  email: string
  at: string
}

/** A secret that becomes effective with its first valid code. */
export interface FactorOffered {
  factorId: string
  /** Secret of the codes, encrypted. */
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
  /** Organization whose administrator did it: from then on the only one that the password opens. */
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

export interface SessionBegan {
  jti: string
  organizationId: string
  userId: string
  /** Address of the client. */
  address: string
  /** Another service identified the person; no password was given. */
  isByProvider?: boolean
  /** Browser session, kept by a cookie: tokens are issued for it. */
  isBrowser?: boolean
  /** Browser session that the token was issued for, and ends with. */
  browserId?: string
  expiresAt: string
  at: string
}

export interface TokenRevoked {
  jti: string
  organizationId: string
  userId: string
  /** Natural expiry of the token. */
  expiresAt: string
  /** How long sockets opened with it stay open. */
  graceMs: number
  at: string
}

/**
 * Purpose of a mailed link: `reopening` opens what a password set by an administrator leaves closed, `emailChange` goes
 * to the new address; `emailUndo` goes to the old one, follows from an `emailChange` and is never issued.
 */
export type LinkKind = 'invitation' | 'verification' | 'reset' | 'reopening' | 'emailChange' | 'emailUndo'

/** A link to be mailed. Its secret is derived from the ids and the keyring, so it is not stored. */
export interface LinkIssued {
  linkId: string
  kind: LinkKind
  email: string
  /** For an invitation the inviting organization, otherwise the one where it was requested. */
  organizationId?: string
  userId?: string
  /** User who requested it for somebody else. */
  askedBy?: string
  /** For an e-mail set by an administrator: followed without the owner's password, it opens only this organization. */
  bindsTo?: string
  /** Whether the mail limit was checked before issue. */
  isCounted?: boolean
  /** Handed over by the operator of the installation, not mailed. */
  isHandedOver?: boolean
  /** Following it also removes the second factor. */
  endsFactor?: boolean
  /** A reopening because an administrator removed the second factor, not the password. */
  isForFactor?: boolean
  expiresAt: string
  at: string
}

export interface LinkFollowed {
  linkId: string
  /** Identifies the command that followed it, and its repetition. */
  useId: string
  at: string
}

/** Streams of forgotten passwords, one per address, whether or not anybody has it. */
export const FORGOTTEN_STREAMS = 'forgotten-'

export const PASSWORD_FORGOTTEN = 'passwordForgotten'

export interface PasswordForgotten {
  /** Address as typed, encrypted. */
  sealedEmail: string
  at: string
}

export const OWNER = { added: 'ownerAdded', removed: 'ownerRemoved' } as const

export interface OwnerEvent {
  userId: string
  at: string
}
