import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import { type EmailChanged, type EmailVerified, IDENTITY, type PasswordChanged } from './events.ts'
import type { IdentityState } from './identity-state.ts'
import type { Link } from './links/links.ts'
import { removal } from './second-factor/second-factor.ts'

/** What somebody shows who reads the mail of an address, or for whom a provider of sign-ins vouches. */
export interface Shown {
  /** The address that is theirs; another one than before replaces that. */
  email: string
  /** Set by a mailed link, or drawn for somebody who signs in elsewhere: it opens all organizations. */
  passwordHash?: string
  /** The organization whose administrator chose the address. */
  bindsTo?: string
  /** Takes the second factor off, no matter who set it up. */
  endsFactor?: boolean
  at: string
}

/**
 * The facts of a proof: the first verification of an address, or a password that is set by a mailed link. Of an address
 * that is verified, shown without a new password, there are none. What was begun before ends with them: links, a second
 * factor that may be somebody else's, and (by `endedByProof`) all that counts proofs. Sessions and what users show are ended
 * by the steps of processes/proof.ts.
 */
export const prove = (
  { email, passwordHash, bindsTo, endsFactor = false, at }: Shown,
  state: Pick<IdentityState, 'email' | 'isVerified' | 'factor'>,
): Fact[] => {
  const facts: Fact[] = []
  if (passwordHash !== undefined)
    facts.push({
      type: IDENTITY.passwordChanged,
      data: { passwordHash, opensOnly: null, at } satisfies PasswordChanged,
    })
  if (email !== state.email)
    facts.push({
      type: IDENTITY.emailChanged,
      data: { email, ...(bindsTo !== undefined && { bindsTo }), at } satisfies EmailChanged,
    })
  if (!state.isVerified || email !== state.email)
    facts.push({ type: IDENTITY.emailVerified, data: { email, at } satisfies EmailVerified })
  // A factor that may be somebody else's would keep the owner out.
  const isForeign = !state.isVerified || (passwordHash !== undefined && state.factor?.isShared === true)
  if (state.factor !== undefined && (isForeign || endsFactor)) facts.push(removal({ at }))
  return facts
}

/** Whether a fact is the proof, or part of one: also in logs of before proofs ended anything. */
export const isProof = ({ type, data }: Fact, state: Pick<IdentityState, 'email' | 'isVerified'>): boolean =>
  (type === IDENTITY.passwordChanged && (data as PasswordChanged).opensOnly === null) ||
  (type === IDENTITY.emailVerified && !state.isVerified && (data as EmailVerified).email === state.email)

/** The identity without what was begun before a proof; commands with the earlier number of proofs are refused. */
export const endedByProof = (state: IdentityState): IdentityState => ({
  ...state,
  links: state.links.filter(outlivesProof),
  offered: undefined,
  proofs: state.proofs + 1,
})

/** Invitations are others' to end, and a link that brings an address back must outlive a takeover. */
export const outlivesProof = ({ kind, useId }: Link): boolean =>
  useId !== undefined || kind === 'invitation' || kind === 'emailUndo'

/**
 * Refuses what was decided on before a proof.
 * @throws Failure unauthenticated where there was one since; `proofs` is the number of them then, absent for what may come later.
 */
export const assertSameProofs = (proofs: number | undefined, state: Pick<IdentityState, 'proofs'>): void => {
  if (proofs !== undefined && proofs !== state.proofs) throw new Failure('unauthenticated')
}
