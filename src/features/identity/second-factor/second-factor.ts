import { Failure } from '../../../kernel/errors.ts'
import type { Fact } from '../../../kernel/event.ts'
import {
  type FactorConfirmed,
  type FactorOffered,
  type FactorRemoved,
  IDENTITY,
  type RecoveryCodesReplaced,
  type RecoveryCodeUsed,
} from '../events.ts'

/** Credential besides the password: codes of a secret in an app, or one of the recovery codes. */
export interface SecondFactor {
  factorId: string
  sealedSecret: string
  /** Unused recovery codes. */
  recoveryHashes: readonly string[]
  /** Set up under a password that somebody else had set, and perhaps by that person. */
  isShared: boolean
  /** Time of its confirmation, RFC 3339. */
  since: string
}

export interface FactorState {
  factor?: SecondFactor
  /** A secret that was answered and is not confirmed yet. */
  offered?: FactorOffered
}

export type FactorCommand =
  | ({ type: 'offerFactor' } & FactorOffered)
  | ({ type: 'confirmFactor' } & FactorConfirmed)
  | ({ type: 'replaceRecoveryCodes' } & RecoveryCodesReplaced)
  | ({ type: 'useRecoveryCode' } & RecoveryCodeUsed)
  | ({ type: 'removeFactor' } & FactorRemoved)

/** @throws Failure conflict if there already is a factor, or none; forbidden for a used recovery code. */
export const decideFactor = (command: FactorCommand, { factor, offered }: FactorState): Fact[] => {
  switch (command.type) {
    case 'offerFactor': {
      const { factorId, sealedSecret, expiresAt, at } = command
      if (factor !== undefined)
        throw new Failure('conflict', { message: 'You have a second factor; take it off before you set up another.' })
      if (offered?.factorId === factorId) return []
      return [{ type: IDENTITY.factorOffered, data: { factorId, sealedSecret, expiresAt, at } satisfies FactorOffered }]
    }
    case 'confirmFactor': {
      const { factorId, recoveryHashes, at } = command
      if (factor?.factorId === factorId) return []
      if (offered?.factorId !== factorId || factor !== undefined) throw nothingOffered()
      return [{ type: IDENTITY.factorConfirmed, data: { factorId, recoveryHashes, at } satisfies FactorConfirmed }]
    }
    case 'replaceRecoveryCodes': {
      const { recoveryHashes, at } = command
      if (factor === undefined) throw noFactor()
      return [{ type: IDENTITY.recoveryCodesReplaced, data: { recoveryHashes, at } satisfies RecoveryCodesReplaced }]
    }
    case 'useRecoveryCode': {
      const { hash, at } = command
      if (!factor?.recoveryHashes.includes(hash)) throw new Failure('wrong_code')
      return [{ type: IDENTITY.recoveryCodeUsed, data: { hash, at } satisfies RecoveryCodeUsed }]
    }
    case 'removeFactor':
      return factor === undefined ? [] : [removal(command)]
  }
}

export const evolveFactor = <State extends FactorState & { opensOnly?: string }>(state: State, fact: Fact): State => {
  switch (fact.type) {
    case IDENTITY.factorOffered:
      return { ...state, offered: fact.data as FactorOffered }
    case IDENTITY.factorConfirmed: {
      const { factorId, recoveryHashes, at: since } = fact.data as FactorConfirmed
      const sealedSecret = state.offered?.sealedSecret ?? ''
      const isShared = state.opensOnly !== undefined
      return { ...state, offered: undefined, factor: { factorId, sealedSecret, recoveryHashes, isShared, since } }
    }
    case IDENTITY.factorRemoved: {
      const { opensOnly = state.opensOnly } = fact.data as FactorRemoved
      return { ...state, offered: undefined, factor: undefined, opensOnly }
    }
    case IDENTITY.recoveryCodesReplaced:
      return withRecovery(state, () => (fact.data as RecoveryCodesReplaced).recoveryHashes)
    case IDENTITY.recoveryCodeUsed:
      return withRecovery(state, (hashes) => hashes.filter((hash) => hash !== (fact.data as RecoveryCodeUsed).hash))
    default:
      return state
  }
}

export const removal = ({ opensOnly, at }: FactorRemoved): Fact => ({
  type: IDENTITY.factorRemoved,
  data: { ...(opensOnly !== undefined && { opensOnly }), at } satisfies FactorRemoved,
})

export const noFactor = (): Failure => new Failure('conflict', { message: 'You have no second factor.' })

export const nothingOffered = (): Failure =>
  new Failure('conflict', { message: 'Begin to set up a second factor first; what was begun holds for an hour.' })

const withRecovery = <State extends FactorState>(
  state: State,
  next: (hashes: readonly string[]) => readonly string[],
): State =>
  state.factor === undefined
    ? state
    : { ...state, factor: { ...state.factor, recoveryHashes: next(state.factor.recoveryHashes) } }
