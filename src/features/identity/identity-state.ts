import type { IdentityCreated, LinkIssued, LinkKind } from './events.ts'
import type { FoundingCommand, FoundingState } from './organizations/founding.ts'
import type { Link } from './links/links.ts'
import type { FactorCommand, FactorState } from './second-factor/second-factor.ts'

export interface Membership {
  organizationId: string
  userId: string
  /** Address under which it began or its invitation was accepted, and the number of changes until then. */
  since?: { email: string; moves: number }
  /** Address that it was joined under, which an undone change took away. Closed under any other. */
  onlyFor?: string
}

export interface IdentityState extends FactorState, FoundingState {
  exists: boolean
  email: string
  name: string
  passwordHash: string
  /** Only organization that the password opens, since somebody else set it; absent if it opens all. */
  opensOnly?: string
  originOrganizationId: string
  /** Organizations still open after an administrator changed the e-mail, also for new passwords; absent for all. */
  boundTo?: readonly string[]
  /** Whether the owner has proved that `email` is theirs. */
  isVerified: boolean
  /** Number of changes of `email`. */
  moves: number
  /** Number of proofs: anything begun under another number has ended. */
  proofs: number
  links: readonly Link[]
  /** Oldest first. */
  memberships: readonly Membership[]
  /** Organizations that tokens were issued for, most recent last. */
  accessed: readonly string[]
}

export type IdentityCommand =
  | ({ type: 'create'; membership?: Membership } & IdentityCreated)
  /** `insteadOf`: a former user that it replaces. */
  | { type: 'addMembership'; membership: Membership; insteadOf?: string; at: string }
  | { type: 'endMembership'; organizationId: string; userId: string; at: string }
  | { type: 'access'; organizationId: string; at: string }
  | ({ type: 'changePassword'; passwordHash: string; opensOnly?: string; at: string } & Since)
  /** Another service vouches for the address; if it was changed since, it stays unverified. */
  | { type: 'verifyEmail'; email: string; passwordHash?: string; at: string }
  | ({ type: 'issueLink'; link: LinkIssued; at: string } & Since)
  | { type: 'cancelEmailChange'; at: string }
  | FollowLink
  | (FactorCommand & Since)
  | FoundingCommand
  /** Has no effect while they are in an organization. */
  | { type: 'forget'; at: string }

/** Decided after `proofs` proofs: refused if there has been another. */
interface Since {
  proofs?: number
}

export interface FollowLink {
  type: 'followLink'
  linkId: string
  kinds: readonly LinkKind[]
  useId: string
  /** Becomes the password of all organizations; unverified people have to set one. */
  passwordHash?: string
  /** The person following the link gave the password that the owner chose. */
  isOwner?: boolean
  at: string
}
