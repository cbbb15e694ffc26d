import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import {
  IDENTITY,
  type EmailChanged,
  type EmailVerified,
  type IdentityCreated,
  type MembershipAdded,
  type MembershipEnded,
  type OrganizationAccessed,
  type PasswordChanged,
} from './events.ts'

export interface Membership {
  organizationId: string
  userId: string
}

export interface IdentityState {
  exists: boolean
  email: string
  name: string
  passwordHash: string
  /** The only organization that the password opens, since somebody else set it; absent for all of them. */
  opensOnly?: string
  originOrganizationId: string
  /** Its owner has shown that `email` is theirs. */
  isVerified: boolean
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
  | { type: 'changeEmail'; email: string; at: string }
  /** Shown for this address; another one by now stays unverified. */
  | { type: 'verifyEmail'; email: string; at: string }

/** One person: an e-mail and a password, however many organizations they are in. */
export const identity: Decider<IdentityState, IdentityCommand> = {
  initial: {
    exists: false,
    email: '',
    name: '',
    passwordHash: '',
    originOrganizationId: '',
    isVerified: false,
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
        return { ...state, passwordHash, opensOnly }
      }
      case IDENTITY.emailChanged:
        return { ...state, email: (fact.data as EmailChanged).email, isVerified: false }
      case IDENTITY.emailVerified:
        return { ...state, isVerified: (fact.data as EmailVerified).email === state.email }
      default:
        return state
    }
  },
}

/** Organizations that the password opens, oldest membership first: of the others whoever set it learns nothing. */
export const openMemberships = ({
  memberships,
  opensOnly,
}: Pick<IdentityState, 'memberships' | 'opensOnly'>): Membership[] =>
  memberships.filter(({ organizationId }) => opensOnly === undefined || organizationId === opensOnly)

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
    case 'changeEmail':
      return state.email === command.email
        ? []
        : [{ type: IDENTITY.emailChanged, data: { email: command.email, at } satisfies EmailChanged }]
    case 'verifyEmail': {
      const { email } = command
      if (state.isVerified || state.email !== email) return []
      return [{ type: IDENTITY.emailVerified, data: { email, at } satisfies EmailVerified }]
    }
  }
}
