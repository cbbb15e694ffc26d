import type { JsonObject } from '../../kernel/json.ts'
import type { ProcessKey } from '../../kit/commands/process.ts'
import type { Change } from '../../kit/resource/writes.ts'
import type { Membership } from './identity.ts'

/** The commands of this feature that write several streams: what each is going to write, decided before it begins. */

export interface FoundOrganizationData {
  name: string
  settings?: JsonObject
  /** Bodies with their `_id`. */
  hubs: readonly JsonObject[]
  /** `key` for the predefined ones. */
  roles: readonly { _id: string; key?: string; name: string; permissions: readonly string[] }[]
  owner: { identityId: string; userId: string; name: string; email: string; roleId: string }
  /** For somebody who has no identity yet. */
  signUp?: { passwordHash: string; firstOnly: boolean }
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
  email?: string
  /** The user's other memberships, which show the e-mail too. */
  others: readonly Membership[]
  joined: readonly string[]
  left: readonly string[]
  passwordHash?: string
  /** The session of whoever changes their own password: every other one ends. */
  keeps?: string
  /** The organization that the password opens alone, where an administrator set it. */
  opensOnly?: string
}

export const CHANGE_USER: ProcessKey<ChangeUserData> = { name: 'change-user' }

export interface DeleteUserData {
  userId: string
  identityId: string
  isOwner: boolean
  expectedVersion?: number
}

export const DELETE_USER: ProcessKey<DeleteUserData> = { name: 'delete-user' }
