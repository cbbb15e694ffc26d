import type { JsonObject } from '../../kernel/json.ts'
import type { ProcessKey } from '../../kit/commands/process.ts'
import type { Change } from '../../kit/resource/writes.ts'
import type { LinkIssued, LinkKind } from './events.ts'
import type { FactorCommand } from './second-factor/second-factor.ts'

/** The commands of this feature that write several streams: what each is going to write, decided before it begins. */

export interface FoundOrganizationData {
  name: string
  settings?: JsonObject
  /** Bodies with their `_id`. */
  hubs: readonly JsonObject[]
  /** `key` for the predefined ones. */
  roles: readonly { _id: string; key?: string; name: string; permissions: readonly string[] }[]
  /** Flows that are copied, each as it was at a version; `key` of a default one. */
  flows?: readonly { _id: string; flowId: string; version: number; key?: string }[]
  owner: { identityId: string; userId: string; name: string; email: string; roleId: string }
  /** Limit of organizations that one person may make. */
  organizationsMax: number
  /** For somebody who has no identity yet. */
  signUp?: { passwordHash: string; firstOnly: boolean; link: LinkIssued }
}

/** About the organization. */
export const FOUND_ORGANIZATION: ProcessKey<FoundOrganizationData> = { name: 'found-organization' }

export interface CreateUserData {
  userId: string
  identityId: string
  /** The fields of the user. */
  values: JsonObject
  isOwner: boolean
  teamIds: readonly string[]
  /** For a person without identity. */
  create?: { email: string; name: string; passwordHash: string }
  /** For a person who is to accept by a mailed link. */
  link?: LinkIssued
  /** A user that was begun or deleted and never came to its end, whose membership this one takes. */
  insteadOf?: string
}

/** About the user, as those below. */
export const CREATE_USER: ProcessKey<CreateUserData> = { name: 'create-user' }

export interface ChangeUserData {
  userId: string
  identityId: string
  change: Pick<Change, 'kind' | 'body'>
  /** The version that the change was decided on. */
  version: number
  /** The fields of `change` as they were. */
  before: JsonObject
  owners?: 'add' | 'remove'
  /** Mailed to the e-mail that is to be theirs. */
  emailLink?: LinkIssued
  /** The change that is pending ends. */
  cancelsEmail?: boolean
  /** Proofs of the identity when its owner gave their password: one more since then refuses the change. */
  proofs?: number
  joined: readonly string[]
  left: readonly string[]
  passwordHash?: string
  /** The session of users who change their own password: every other one ends. */
  keeps?: string
  /** The organization that the password opens alone, where an administrator set it, and the link that opens the others again. */
  opensOnly?: string
  reopeningLink?: LinkIssued
}

export const CHANGE_USER: ProcessKey<ChangeUserData> = { name: 'change-user' }

export interface AcceptInvitationData {
  userId: string
  identityId: string
  linkId: string
  useId: string
  /** Hash of the new password, for a person who had none or was not verified. */
  passwordHash?: string
  /** Name of the user from now on. */
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
  /** The e-mail that is theirs from now on. */
  email?: string
}

/** About the identity. */
export const FOLLOW_LINK: ProcessKey<FollowLinkData> = { name: 'follow-link' }

export interface VerifyAddressData {
  identityId: string
  /** Theirs, as another service says. */
  email: string
  /** Hash of a password that nobody knows. */
  passwordHash: string
}

/** About the identity. */
export const VERIFY_ADDRESS: ProcessKey<VerifyAddressData> = { name: 'verify-address' }

export interface ChangeFactorData {
  identityId: string
  change: Extract<FactorCommand, { type: 'confirmFactor' | 'removeFactor' }>
  /** The session of users who change their own factor: every other one ends. */
  keeps?: string
  /** What opens the organizations again that an administrator's removal closes. */
  reopeningLink?: LinkIssued
}

/** About the identity. */
export const CHANGE_FACTOR: ProcessKey<ChangeFactorData> = { name: 'change-second-factor' }

export interface DeleteUserData {
  userId: string
  identityId: string
  isOwner: boolean
  expectedVersion?: number
  /** Nothing of them is to be left. */
  erase?: {
    /** Trackers that are their phones, with where they have been. */
    phoneIds: readonly string[]
    /** Where it is noted that they forgot their password. */
    forgotten: string
  }
}

export const DELETE_USER: ProcessKey<DeleteUserData> = { name: 'delete-user' }

export type EraseOrganizationData = Record<string, never>

/** About the organization. */
export const ERASE_ORGANIZATION: ProcessKey<EraseOrganizationData> = { name: 'erase-organization' }
