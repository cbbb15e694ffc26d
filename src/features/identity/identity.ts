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
  type MembershipAdded,
  type MembershipEnded,
  type OrganizationAccessed,
  type PasswordChanged,
} from './events.ts'
import { decideFounding, evolveFounding } from './organizations/founding.ts'
import { isOpen, type Link, linkEnded, withLink } from './links/links.ts'
import { isOfAnother, leftBehind, undone, withUndo } from './links/email-undo.ts'
import { assertSameProofs, endedByProof, isProof, outlivesProof, prove } from './proof.ts'
import type { FollowLink, IdentityCommand, IdentityState, Membership } from './identity-state.ts'
import { decideFactor, evolveFactor } from './second-factor/second-factor.ts'

/** A person: one e-mail and one password for all organizations. */
export const identity: Decider<IdentityState, IdentityCommand> = {
  initial: {
    exists: false,
    email: '',
    name: '',
    passwordHash: '',
    originOrganizationId: '',
    isVerified: false,
    moves: 0,
    proofs: 0,
    links: [],
    memberships: [],
    accessed: [],
    founded: [],
  },
  decide: (command, state) => {
    if (command.type === 'create') return state.exists ? [] : created(command)
    if (!state.exists) throw new Failure('not_found')
    return decideExisting(command, state)
  },
  evolve: (state, fact) => {
    const next = evolved(state, fact)
    return isProof(fact, state) ? endedByProof(next) : next
  },
}

const evolved = (state: IdentityState, fact: Fact): IdentityState => {
  switch (fact.type) {
    case IDENTITY.created: {
      const { email, name, passwordHash, originOrganizationId } = fact.data as IdentityCreated
      return { ...state, exists: true, email, name, passwordHash, originOrganizationId }
    }
    case IDENTITY.deleted:
      return { ...identity.initial }
    case IDENTITY.membershipAdded: {
      const { organizationId, userId } = fact.data as MembershipAdded
      const since = { email: state.email, moves: state.moves }
      return { ...state, memberships: [...state.memberships, { organizationId, userId, since }] }
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
      // Changing a password that somebody else set opens no further organizations.
      const { passwordHash, opensOnly = state.opensOnly } = fact.data as PasswordChanged
      const links = isOwn(fact.data as PasswordChanged) ? state.links : state.links.filter(outlivesPassword)
      return { ...state, passwordHash, opensOnly: opensOnly ?? undefined, links, offered: undefined }
    }
    case IDENTITY.emailChanged: {
      const { email, bindsTo } = fact.data as EmailChanged
      // Links were mailed to the previous address.
      const links = leftBehind(state.links, state).filter(outlivesProof)
      return { ...state, email, moves: state.moves + 1, isVerified: false, boundTo: boundBy(state, bindsTo), links }
    }
    case IDENTITY.emailVerified:
      return { ...state, isVerified: (fact.data as EmailVerified).email === state.email }
    default:
      return evolvedLinks(state, fact)
  }
}

const evolvedLinks = (state: IdentityState, fact: Fact): IdentityState => {
  switch (fact.type) {
    case IDENTITY.linkIssued: {
      const issued = fact.data as LinkIssued
      const links = withLink(state.links, issued)
      return { ...state, links: issued.kind === 'emailChange' ? withUndo(links, issued, state.email) : links }
    }
    case IDENTITY.linkFollowed: {
      const { linkId, useId } = fact.data as LinkFollowed
      const link = state.links.find((one) => one.linkId === linkId)
      const next = { ...state, links: state.links.map((one) => (one === link ? { ...link, useId } : one)) }
      if (link?.kind === 'emailUndo') return undone(next, link)
      return link?.kind === 'invitation' ? accepted(next, link) : next
    }
    case IDENTITY.emailChangeCancelled:
      return { ...state, links: state.links.filter((link) => !isPendingChange(link)) }
    default:
      return evolveFounding(evolveFactor(state, fact), fact)
  }
}

/** An organization that invited the present address is open to the reader of its mail. */
const accepted = (state: IdentityState, { organizationId = '' }: Link): IdentityState => {
  const { boundTo, email, moves } = state
  return {
    ...state,
    boundTo: boundTo === undefined || boundTo.includes(organizationId) ? boundTo : [...boundTo, organizationId],
    memberships: state.memberships.map(({ onlyFor, ...membership }) =>
      membership.organizationId === organizationId
        ? { ...membership, since: { email, moves } }
        : { ...membership, ...(onlyFor !== undefined && { onlyFor }) },
    ),
  }
}

/** Organizations that the password opens, oldest membership first: its setter learns nothing of the others. */
export const openMemberships = ({
  memberships,
  opensOnly,
  boundTo,
  email,
}: Pick<IdentityState, 'memberships' | 'opensOnly' | 'boundTo'> & { email?: string }): Membership[] =>
  memberships.filter(
    (membership) =>
      (opensOnly === undefined || membership.organizationId === opensOnly) &&
      (boundTo?.includes(membership.organizationId) ?? true) &&
      !isOfAnother(membership, email),
  )

/** Organizations that the password opens, in order of login: most recently accessed first, then oldest memberships. */
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
      const { passwordHash, opensOnly, proofs } = command
      assertSameProofs(proofs, state)
      if (state.passwordHash === passwordHash) return []
      const data: PasswordChanged = { passwordHash, ...(opensOnly !== undefined && { opensOnly }), at }
      return [{ type: IDENTITY.passwordChanged, data }]
    }
    case 'verifyEmail': {
      if (state.isVerified || state.email !== command.email) return []
      return prove(command, state)
    }
    case 'cancelEmailChange':
      return state.links.some(isPendingChange) ? [{ type: IDENTITY.emailChangeCancelled, data: { at } }] : []
    case 'forget':
      return state.memberships.length > 0 ? [] : [{ type: IDENTITY.deleted, data: { at } }]
    case 'issueLink':
      assertSameProofs(command.proofs, state)
      return issued(command.link, state)
    case 'followLink':
      return followed(command, state)
    case 'found':
    case 'endFounding':
      return decideFounding(command, state)
    default:
      assertSameProofs(command.proofs, state)
      return decideFactor(command, state)
  }
}

/** @throws Failure not_found for an invitation of a person who is no longer a member. */
const issued = (link: LinkIssued, { links, memberships }: IdentityState): Fact[] => {
  const { kind, linkId, userId } = link
  if (kind === 'invitation' && !memberships.some((membership) => membership.userId === userId))
    throw new Failure('not_found')
  return links.some((one) => one.linkId === linkId) ? [] : [{ type: IDENTITY.linkIssued, data: link }]
}

const isOwn = ({ opensOnly }: PasswordChanged): boolean => opensOnly === undefined

/** Whether a link survives an administrator setting a password: links requested by the person may be a thief's. */
const outlivesPassword = (link: Link): boolean =>
  outlivesProof(link) || (link.kind === 'emailChange' && link.askedBy !== undefined)

const isPendingChange = ({ kind, useId }: Link): boolean => kind === 'emailChange' && useId === undefined

/** The reader of mail at an address set by an administrator may be that administrator. */
const boundBy = ({ boundTo }: IdentityState, bindsTo: string | undefined): readonly string[] | undefined =>
  bindsTo === undefined ? boundTo : (boundTo?.filter((organizationId) => organizationId === bindsTo) ?? [bindsTo])

/** @throws Failure invalid for a link that cannot be followed, or if a required password is missing. */
const followed = ({ linkId, kinds, useId, passwordHash, isOwner, at }: FollowLink, state: IdentityState): Fact[] => {
  const link = state.links.find((one) => one.linkId === linkId)
  if (link?.useId === useId) return []
  if (link === undefined || !kinds.includes(link.kind) || !isOpen(link, at)) throw linkEnded()
  const isUndo = link.kind === 'emailUndo'
  if (passwordHash === undefined && isUndo) throw invalid('/password', 'is required: choose a new one')
  if (passwordHash === undefined && !state.isVerified)
    throw invalid('/password', 'is required: the address is not verified yet')
  const isSince = isUndo && state.factor !== undefined && state.factor.since >= link.at
  const shown = {
    email: isUndo || link.kind === 'emailChange' ? link.email : state.email,
    passwordHash,
    bindsTo: isOwner ? undefined : link.bindsTo,
    endsFactor: link.endsFactor === true || isSince,
    at,
  }
  return [{ type: IDENTITY.linkFollowed, data: { linkId, useId, at } satisfies LinkFollowed }, ...prove(shown, state)]
}
