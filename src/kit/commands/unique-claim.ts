import type { EventLog } from '../../engines/event-log.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Keyring } from '../keys/keyring.ts'
import { handleCommand, type CommandContext } from './handle-command.ts'

/** A claim that nobody confirmed for so long may be claimed anew. */
const CLAIM_MS = 60_000

export interface ClaimState {
  owner: string | undefined
  confirmed: boolean
  /** When it was claimed, ms since the epoch. */
  at: number
}

type ClaimCommand =
  | { type: 'claim'; owner: string; now: number; ownerHolds: boolean; field: string }
  | { type: 'confirm'; owner: string; field: string }
  | { type: 'release'; owner: string }

/** Who holds a unique value. Events: `<noun>KeyClaimed`, `<noun>KeyConfirmed`, `<noun>KeyReleased` {owner, at?}. */
const claimDecider = (noun: string): Decider<ClaimState, ClaimCommand> => ({
  initial: { owner: undefined, confirmed: false, at: 0 },
  decide: (command, state) => {
    const { owner } = command
    if (command.type === 'release')
      return state.owner === owner ? [{ type: `${noun}KeyReleased`, data: { owner } }] : []
    if (command.type === 'confirm') {
      if (state.owner !== owner) throw taken(command.field)
      return state.confirmed ? [] : [{ type: `${noun}KeyConfirmed`, data: { owner } }]
    }
    if (state.owner === owner) return []
    const held =
      state.owner !== undefined && (state.confirmed || command.ownerHolds || command.now - state.at < CLAIM_MS)
    if (held) throw taken(command.field)
    return [{ type: `${noun}KeyClaimed`, data: { owner, at: command.now } }]
  },
  evolve: (state, fact) => {
    const { owner, at } = fact.data as { owner: string; at?: number }
    if (fact.type === `${noun}KeyClaimed`) return { owner, confirmed: false, at: at ?? 0 }
    if (fact.type === `${noun}KeyConfirmed`) return { ...state, confirmed: true }
    return { owner: undefined, confirmed: false, at: 0 }
  },
})

/** A value that only one record may have: claim it, write the record, confirm; release what is no longer used. */
export interface UniqueClaim {
  noun: string
  /** The field that a refusal names. */
  field: string
  stream: string
}

/** `scope` is the organization, or empty for a value that is unique in the whole installation. Values compare without case. */
export const uniqueClaim = (
  keyring: Keyring,
  noun: string,
  field: string,
  scope: string,
  value: string,
): UniqueClaim => ({
  noun,
  field,
  stream: `${noun}-by-${keyring.hmac('unique', [noun, field, scope, normalizeKey(value)].join('\u0000')).toString('hex')}`,
})

export const normalizeKey = (value: string): string => value.normalize('NFC').trim().toLowerCase()

/** Whoever holds the value, confirmed or not. */
export const claimOwner = async (log: EventLog, claim: UniqueClaim): Promise<ClaimState> => {
  const events = await log.read(claim.stream, 'end', 2, 'backwards')
  const decider = claimDecider(claim.noun)
  return events
    .reverse()
    .reduce(
      (state, event) =>
        decider.evolve(state, { type: event.type, data: JSON.parse(new TextDecoder().decode(event.data)) }),
      decider.initial,
    )
}

/**
 * Claims the value for `owner`. `holds` tells whether a record that never confirmed its claim uses the value all the same.
 * @throws Failure key_in_use
 */
export const claimValue = async (
  log: EventLog,
  claim: UniqueClaim,
  owner: string,
  now: number,
  context: CommandContext,
  holds: (owner: string) => Promise<boolean>,
): Promise<void> => {
  const current = await claimOwner(log, claim)
  const isStale =
    current.owner !== undefined && current.owner !== owner && !current.confirmed && now - current.at >= CLAIM_MS
  const ownerHolds = isStale && current.owner !== undefined && (await holds(current.owner))
  await handleCommand(
    log,
    claim.stream,
    claimDecider(claim.noun),
    { type: 'claim', owner, now, ownerHolds, field: claim.field },
    context,
  )
}

/** @throws Failure key_in_use when the claim went to another one meanwhile: the caller then undoes what it wrote. */
export const confirmClaim = async (
  log: EventLog,
  claim: UniqueClaim,
  owner: string,
  context: CommandContext,
): Promise<void> => {
  await handleCommand(
    log,
    claim.stream,
    claimDecider(claim.noun),
    { type: 'confirm', owner, field: claim.field },
    context,
  )
}

export const releaseClaim = async (
  log: EventLog,
  claim: UniqueClaim,
  owner: string,
  context: CommandContext,
): Promise<void> => {
  await handleCommand(log, claim.stream, claimDecider(claim.noun), { type: 'release', owner }, context)
}

const taken = (field: string): Failure => {
  const path = `/${field}`
  return new Failure('key_in_use', {
    message: `${path} is taken by another record`,
    errors: [{ path, message: 'is taken by another record' }],
  })
}
