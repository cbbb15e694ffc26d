import type { IdentityCreated, LinkIssued, LinkKind } from './events.ts'
import type { FoundingCommand, FoundingState } from './organizations/founding.ts'
import type { Link } from './links/links.ts'
import type { FactorCommand, FactorState } from './second-factor/second-factor.ts'

export interface Membership {
  organizationId: string
  userId: string
  /** The address under which it began or its invitation was accepted, and how many changes of it there had been. */
  since?: { email: string; moves: number }
  /** The address that it belongs to: it was brought away from this one by an undone change. Closed under any other. */
  onlyFor?: string
}

export interface IdentityState extends FactorState, FoundingState {
  exists: boolean
  email: string
  name: string
  passwordHash: string
  /** The only organization that the password opens, since somebody else set it; absent for all of them. */
  opensOnly?: string
  originOrganizationId: string
  /** The organizations that are open since an administrator changed the e-mail; absent for all of them. No new password opens others. */
  boundTo?: readonly string[]
  /** Its owner has shown that `email` is theirs. */
  isVerified: boolean
  /** How often `email` changed. */
  moves: number
  /** How many proofs there were: whatever was begun under another number has ended. */
  proofs: number
  links: readonly Link[]
  /** Oldest first. */
  memberships: readonly Membership[]
  /** Organizations that a token was issued for, the most recent one last. */
  accessed: readonly string[]
}

export type IdentityCommand =
  | ({ type: 'create'; membership?: Membership } & IdentityCreated)
  /** `insteadOf`: a user that is no more, whose place it takes. */
  | { type: 'addMembership'; membership: Membership; insteadOf?: string; at: string }
  | { type: 'endMembership'; organizationId: string; userId: string; at: string }
  | { type: 'access'; organizationId: string; at: string }
  | ({ type: 'changePassword'; passwordHash: string; opensOnly?: string; at: string } & Since)
  /** Another service vouches for the address; one changed since stays unverified. */
  | { type: 'verifyEmail'; email: string; passwordHash?: string; at: string }
  | ({ type: 'issueLink'; link: LinkIssued; at: string } & Since)
  | { type: 'cancelEmailChange'; at: string }
  | FollowLink
  | (FactorCommand & Since)
  | FoundingCommand
  /** Nobody is left to be: nothing happens while they are in an organization. */
  | { type: 'forget'; at: string }

/** Decided on the identity as it was after `proofs` proofs: one more refuses it. */
interface Since {
  proofs?: number
}

export interface FollowLink {
  type: 'followLink'
  linkId: string
  kinds: readonly LinkKind[]
  useId: string
  /** Makes it the password of all organizations; unverified people have to set one. */
  passwordHash?: string
  /** The follower of the link gave the password that the owner chose. */
  isOwner?: boolean
  at: string
}
