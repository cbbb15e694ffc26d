import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import { type EmailChanged, type EmailVerified, IDENTITY, type PasswordChanged } from './events.ts'
import type { IdentityState } from './identity-state.ts'
import type { Link } from './links/links.ts'
import { removal } from './second-factor/second-factor.ts'

/** Proof of a person who reads the mail of an address, or for whom a sign-in provider vouches. */
export interface Shown {
  /** Proved address; it replaces a different one. */
  email: string
  /** Set by a mailed link, or random for a person who signs in elsewhere: it opens all organizations. */
  passwordHash?: string
  /** Organization whose administrator chose the address. */
  bindsTo?: string
  /** Removes the second factor, no matter who set it up. */
  endsFactor?: boolean
  at: string
}

/**
 * Facts of a proof: the first verification of an address, or a password set by a mailed link. A verified address
 * without a new password yields none. Everything begun before ends with them: links, a second factor that may be
 * somebody else's, and (by `endedByProof`) all that counts proofs. Sessions and users' other state are ended by the
 * steps of processes/proof.ts.
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
  // Somebody else's factor would lock the owner out.
  const isForeign = !state.isVerified || (passwordHash !== undefined && state.factor?.isShared === true)
  if (state.factor !== undefined && (isForeign || endsFactor)) facts.push(removal({ at }))
  return facts
}

/** Whether a fact is a proof or part of one: also in logs from before proofs ended anything. */
export const isProof = ({ type, data }: Fact, state: Pick<IdentityState, 'email' | 'isVerified'>): boolean =>
  (type === IDENTITY.passwordChanged && (data as PasswordChanged).opensOnly === null) ||
  (type === IDENTITY.emailVerified && !state.isVerified && (data as EmailVerified).email === state.email)

/** The identity without anything begun before a proof; commands with the earlier number of proofs are refused. */
export const endedByProof = (state: IdentityState): IdentityState => ({
  ...state,
  links: state.links.filter(outlivesProof),
  offered: undefined,
  proofs: state.proofs + 1,
})

/** Only others end invitations, and an undo link must outlive a takeover. */
export const outlivesProof = ({ kind, useId }: Link): boolean =>
  useId !== undefined || kind === 'invitation' || kind === 'emailUndo'

/**
 * Refuses decisions made before a proof.
 * @throws Failure unauthenticated if there was one since; `proofs`: their number then, absent for later decisions.
 */
export const assertSameProofs = (proofs: number | undefined, state: Pick<IdentityState, 'proofs'>): void => {
  if (proofs !== undefined && proofs !== state.proofs) throw new Failure('unauthenticated')
}
