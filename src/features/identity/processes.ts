import type { JsonObject } from '../../kernel/json.ts'
import type { ProcessKey } from '../../kit/commands/process.ts'
import type { Change } from '../../kit/resource/writes.ts'
import type { LinkIssued, LinkKind } from './events.ts'
import type { FactorCommand } from './second-factor/second-factor.ts'

/** Data of this feature's commands that write several streams: each one's writes, decided before it begins. */

export interface FoundOrganizationData {
  name: string
  settings?: JsonObject
  /** Bodies including their `_id`. */
  hubs: readonly JsonObject[]
  /** `key` for the predefined ones. */
  roles: readonly { _id: string; key?: string; name: string; permissions: readonly string[] }[]
  /** Copied flows, each at a version; `key` of a default one. */
  flows?: readonly { _id: string; flowId: string; version: number; key?: string }[]
  owner: { identityId: string; userId: string; name: string; email: string; roleId: string }
  /** Limit of organizations that one person may create. */
  organizationsMax: number
  /** For a person without an identity. */
  signUp?: { passwordHash: string; firstOnly: boolean; link: LinkIssued }
}

/** Process of the organization. */
export const FOUND_ORGANIZATION: ProcessKey<FoundOrganizationData> = { name: 'found-organization' }

export interface CreateUserData {
  userId: string
  identityId: string
  values: JsonObject
  isOwner: boolean
  teamIds: readonly string[]
  /** For a person without an identity. */
  create?: { email: string; name: string; passwordHash: string }
  /** For a person who accepts by a mailed link. */
  link?: LinkIssued
  /** A user whose creation or deletion was never completed, and whose membership this one takes over. */
  insteadOf?: string
}

/** Process of the user, like those below. */
export const CREATE_USER: ProcessKey<CreateUserData> = { name: 'create-user' }

export interface ChangeUserData {
  userId: string
  identityId: string
  change: Pick<Change, 'kind' | 'body'>
  /** Version that the change was decided on. */
  version: number
  /** Previous values of the fields of `change`. */
  before: JsonObject
  owners?: 'add' | 'remove'
  /** Mailed to the new e-mail. */
  emailLink?: LinkIssued
  /** Cancels the pending change of the e-mail. */
  cancelsEmail?: boolean
  /** Number of the identity's proofs when its owner gave their password: another one since then refuses the change. */
  proofs?: number
  joined: readonly string[]
  left: readonly string[]
  passwordHash?: string
  /** Session of users who change their own password: all others end. */
  keeps?: string
  /** The only organization that a password set by an administrator opens, and the link that opens the others again. */
  opensOnly?: string
  reopeningLink?: LinkIssued
}

export const CHANGE_USER: ProcessKey<ChangeUserData> = { name: 'change-user' }

export interface AcceptInvitationData {
  userId: string
  identityId: string
  linkId: string
  useId: string
  /** Hash of the new password, for a person without one or not verified. */
  passwordHash?: string
  name: string
  email: string
  isOwner: boolean
}

export const ACCEPT_INVITATION: ProcessKey<AcceptInvitationData> = { name: 'accept-invitation' }

export interface FollowLinkData {
  identityId: string
  linkId: string
  kinds: readonly LinkKind[]
  useId: string
  passwordHash?: string
  isOwner?: boolean
  email?: string
}

/** Process of the identity. */
export const FOLLOW_LINK: ProcessKey<FollowLinkData> = { name: 'follow-link' }

export interface VerifyAddressData {
  identityId: string
  /** Address of the person, according to another service. */
  email: string
  /** Hash of a password that nobody knows. */
  passwordHash: string
}

/** Process of the identity. */
export const VERIFY_ADDRESS: ProcessKey<VerifyAddressData> = { name: 'verify-address' }

export interface ChangeFactorData {
  identityId: string
  change: Extract<FactorCommand, { type: 'confirmFactor' | 'removeFactor' }>
  /** Session of users who change their own factor: all others end. */
  keeps?: string
  /** Link that opens the organizations closed by an administrator's removal again. */
  reopeningLink?: LinkIssued
}

/** Process of the identity. */
export const CHANGE_FACTOR: ProcessKey<ChangeFactorData> = { name: 'change-second-factor' }

export interface DeleteUserData {
  userId: string
  identityId: string
  isOwner: boolean
  expectedVersion?: number
  /** Erases the person entirely. */
  erase?: {
    /** Trackers that are their phones, with their location history. */
    phoneIds: readonly string[]
    /** Stream of their forgotten password. */
    forgotten: string
  }
}

export const DELETE_USER: ProcessKey<DeleteUserData> = { name: 'delete-user' }

export type EraseOrganizationData = Record<string, never>

/** Process of the organization. */
export const ERASE_ORGANIZATION: ProcessKey<EraseOrganizationData> = { name: 'erase-organization' }
