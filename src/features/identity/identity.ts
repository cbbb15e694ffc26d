import type { Decider } from '../../kernel/decider.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import {
  IDENTITY,
  type EmailChanged,
  type EmailVerified,
  type IdentityCreated,
  type LinkFollowed,
  type LinkIssued,
  type LinkKind,
  type MembershipAdded,
  type MembershipEnded,
  type OrganizationAccessed,
  type PasswordChanged,
} from './events.ts'
import { isOpen, type Link, linkEnded, withLink } from './links.ts'
import { decideFactor, evolveFactor, type FactorCommand, type FactorState, removal } from './second-factor.ts'

export interface Membership {
  organizationId: string
  userId: string
}

export interface IdentityState extends FactorState {
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
  | { type: 'changePassword'; passwordHash: string; opensOnly?: string; at: string }
  /** Shown for this address; another one by now stays unverified. */
  | { type: 'verifyEmail'; email: string; at: string }
  | { type: 'issueLink'; link: LinkIssued; at: string }
  | FollowLink
  | FactorCommand
  /** Nobody is left to be: nothing happens while they are in an organization. */
  | { type: 'forget'; at: string }

export interface FollowLink {
  type: 'followLink'
  linkId: string
  kinds: readonly LinkKind[]
  useId: string
  /** Makes it the password of all organizations; whoever is not verified has to set one. */
  passwordHash?: string
  /** Whoever follows it gave the password that the owner chose. */
  isOwner?: boolean
  at: string
}

/** One person: an e-mail and a password, however many organizations they are in. */
export const identity: Decider<IdentityState, IdentityCommand> = {
  initial: {
    exists: false,
    email: '',
    name: '',
    passwordHash: '',
    originOrganizationId: '',
    isVerified: false,
    links: [],
    memberships: [],
    accessed: [],
  },
  decide: (command, state) => {
    if (command.type === 'create') return state.exists ? [] : created(command)
    if (!state.exists) throw new Failure('not_found')
    return decideExisting(command, state)
  },
  evolve: (state, fact) => {
    switch (fact.type) {
      case IDENTITY.created: {
        const { email, name, passwordHash, originOrganizationId } = fact.data as IdentityCreated
        return { ...state, exists: true, email, name, passwordHash, originOrganizationId }
      }
      case IDENTITY.deleted:
        return { ...identity.initial }
      case IDENTITY.membershipAdded: {
        const { organizationId, userId } = fact.data as MembershipAdded
        return { ...state, memberships: [...state.memberships, { organizationId, userId }] }
      }
      case IDENTITY.membershipEnded: {
        const { organizationId } = fact.data as MembershipEnded
        return {
          ...state,
          memberships: state.memberships.filter((membership) => membership.organizationId !== organizationId),
          accessed: state.accessed.filter((accessed) => accessed !== organizationId),
          links: state.links.filter((link) => link.kind !== 'invitation' || link.organizationId !== organizationId),
        }
      }
      case IDENTITY.organizationAccessed: {
        const { organizationId } = fact.data as OrganizationAccessed
        return {
          ...state,
          accessed: [...state.accessed.filter((accessed) => accessed !== organizationId), organizationId],
        }
      }
      case IDENTITY.passwordChanged: {
        // Whoever knows a password that somebody else set opens no more with it by changing it.
        const { passwordHash, opensOnly = state.opensOnly } = fact.data as PasswordChanged
        const links = isOwn(fact.data as PasswordChanged) ? state.links : state.links.filter(outlivesPassword)
        return { ...state, passwordHash, opensOnly: opensOnly ?? undefined, links, offered: undefined }
      }
      case IDENTITY.emailChanged:
        return {
          ...state,
          email: (fact.data as EmailChanged).email,
          isVerified: false,
          boundTo: boundBy(state, (fact.data as EmailChanged).bindsTo),
          links: state.links.filter(outlivesPassword), // they were mailed to the address before
        }
      case IDENTITY.emailVerified:
        return { ...state, isVerified: (fact.data as EmailVerified).email === state.email }
      case IDENTITY.linkIssued:
        return { ...state, links: withLink(state.links, fact.data as LinkIssued) }
      case IDENTITY.linkFollowed: {
        const { linkId, useId } = fact.data as LinkFollowed
        const link = state.links.find((one) => one.linkId === linkId)
        return {
          ...state,
          links: state.links.map((one) => (one === link ? { ...link, useId } : one)),
          boundTo: link?.kind === 'invitation' ? boundWith(state, link.organizationId) : state.boundTo,
        }
      }
      default:
        return evolveFactor(state, fact)
    }
  },
}

/** Organizations that the password opens, oldest membership first: of the others whoever set it learns nothing. */
export const openMemberships = ({
  memberships,
  opensOnly,
  boundTo,
}: Pick<IdentityState, 'memberships' | 'opensOnly' | 'boundTo'>): Membership[] =>
  memberships.filter(
    ({ organizationId }) =>
      (opensOnly === undefined || organizationId === opensOnly) && (boundTo?.includes(organizationId) ?? true),
  )

/** Organizations that the password opens, in the order in which a login tries them: the most recently accessed first, then the oldest memberships. */
export const loginOrder = (state: IdentityState): Membership[] => {
  const { accessed } = state
  const open = openMemberships(state)
  const rank = ({ organizationId }: Membership): number => accessed.indexOf(organizationId)
  return open.sort((a, b) => rank(b) - rank(a))
}

const created = ({
  membership,
  email,
  name,
  passwordHash,
  originOrganizationId,
  at,
}: Extract<IdentityCommand, { type: 'create' }>): Fact[] => [
  { type: IDENTITY.created, data: { email, name, passwordHash, originOrganizationId, at } satisfies IdentityCreated },
  ...(membership === undefined
    ? []
    : [{ type: IDENTITY.membershipAdded, data: { ...membership, at } satisfies MembershipAdded }]),
]

const decideExisting = (command: Exclude<IdentityCommand, { type: 'create' }>, state: IdentityState): Fact[] => {
  const { at } = command
  switch (command.type) {
    case 'addMembership': {
      const { organizationId, userId } = command.membership
      const present = state.memberships.find((membership) => membership.organizationId === organizationId)
      if (present?.userId === userId) return []
      const added = { type: IDENTITY.membershipAdded, data: { organizationId, userId, at } satisfies MembershipAdded }
      if (present !== undefined && present.userId === command.insteadOf)
        return [{ type: IDENTITY.membershipEnded, data: { organizationId, at } satisfies MembershipEnded }, added]
      if (present !== undefined)
        throw new Failure('key_in_use', {
          message: 'This person is already in the organization.',
          errors: [{ path: '/email', message: 'is already in the organization' }],
        })
      return [added]
    }
    case 'endMembership': {
      const { organizationId, userId } = command
      const isMember = state.memberships.some((one) => one.organizationId === organizationId && one.userId === userId)
      if (!isMember) return []
      return [{ type: IDENTITY.membershipEnded, data: { organizationId, at } satisfies MembershipEnded }]
    }
    case 'access':
      if (state.accessed.at(-1) === command.organizationId) return []
      return [
        {
          type: IDENTITY.organizationAccessed,
          data: { organizationId: command.organizationId, at } satisfies OrganizationAccessed,
        },
      ]
    case 'changePassword': {
      const { passwordHash, opensOnly } = command
      if (state.passwordHash === passwordHash) return []
      const data: PasswordChanged = { passwordHash, ...(opensOnly !== undefined && { opensOnly }), at }
      return [{ type: IDENTITY.passwordChanged, data }]
    }
    case 'verifyEmail': {
      const { email } = command
      if (state.isVerified || state.email !== email) return []
      return [{ type: IDENTITY.emailVerified, data: { email, at } satisfies EmailVerified }]
    }
    case 'forget':
      return state.memberships.length > 0 ? [] : [{ type: IDENTITY.deleted, data: { at } }]
    case 'issueLink':
      return issued(command.link, state)
    case 'followLink':
      return followed(command, state)
    default:
      return decideFactor(command, state)
  }
}

/** @throws Failure not_found for an invitation of somebody who is no member any more. */
const issued = (link: LinkIssued, { links, memberships }: IdentityState): Fact[] => {
  const { kind, linkId, userId } = link
  if (kind === 'invitation' && !memberships.some((membership) => membership.userId === userId))
    throw new Failure('not_found')
  return links.some((one) => one.linkId === linkId) ? [] : [{ type: IDENTITY.linkIssued, data: link }]
}

const isOwn = ({ opensOnly }: PasswordChanged): boolean => opensOnly === undefined

/** Whether a link is still good once somebody has set a password anew: those that set one themselves are not. */
const outlivesPassword = ({ kind, useId }: Link): boolean =>
  useId !== undefined || kind === 'invitation' || kind === 'emailChange'

/** Whoever reads mail at an address that an administrator chose may be the administrator. */
const boundBy = ({ boundTo }: IdentityState, bindsTo: string | undefined): readonly string[] | undefined =>
  bindsTo === undefined ? boundTo : (boundTo?.filter((organizationId) => organizationId === bindsTo) ?? [bindsTo])

/** An organization that invited the address as it is now is open to whoever reads mail there. */
const boundWith = ({ boundTo }: IdentityState, organizationId = ''): readonly string[] | undefined =>
  boundTo === undefined || boundTo.includes(organizationId) ? boundTo : [...boundTo, organizationId]

/** @throws Failure invalid for a link that cannot be followed, and without a password where one must be set. */
const followed = ({ linkId, kinds, useId, passwordHash, isOwner, at }: FollowLink, state: IdentityState): Fact[] => {
  const link = state.links.find((one) => one.linkId === linkId)
  if (link?.useId === useId) return []
  if (link === undefined || !kinds.includes(link.kind) || !isOpen(link, at)) throw linkEnded()
  if (!state.isVerified && passwordHash === undefined)
    throw invalid('/password', 'is required: the address is not verified yet')
  const email = link.kind === 'emailChange' ? link.email : state.email
  const facts: Fact[] = [{ type: IDENTITY.linkFollowed, data: { linkId, useId, at } satisfies LinkFollowed }]
  if (passwordHash !== undefined) {
    const data: PasswordChanged = { passwordHash, opensOnly: null, at }
    facts.push({ type: IDENTITY.passwordChanged, data })
  }
  if (email !== state.email) {
    const data: EmailChanged = { email, ...(link.bindsTo !== undefined && !isOwner && { bindsTo: link.bindsTo }), at }
    facts.push({ type: IDENTITY.emailChanged, data })
  }
  if (!state.isVerified || email !== state.email)
    facts.push({ type: IDENTITY.emailVerified, data: { email, at } satisfies EmailVerified })
  // A factor that may be somebody else's would keep the owner out.
  const isForeign = !state.isVerified || (passwordHash !== undefined && state.factor?.isShared === true)
  if (state.factor !== undefined && (isForeign || link.endsFactor === true)) facts.push(removal({ at }))
  return facts
}
