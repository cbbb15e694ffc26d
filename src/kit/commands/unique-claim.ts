import type { EventLog } from '../../engines/event-log.ts'
import { Failure, taken } from '../../kernel/errors.ts'
import { decodeJson, type EventMetadata } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import { normalized } from '../../kernel/text.ts'
import type { Keyring } from '../keys/keyring.ts'
import type { IdSource } from '../http/route.ts'
import { appendFacts } from './handle-command.ts'

/**
 * A value that only one record may have. The claim's stream names the last record to ask for it; the stream of that
 * record tells whether it holds it. So nothing is confirmed or released: a claim is free if its owner was never made,
 * was deleted or has another value now, wherever a crash came in between.
 */
export interface UniqueClaim {
  noun: string
  /** The field that a refusal names. */
  field: string
  stream: string
}

/** The record that a claim names. */
interface Claimant {
  owner: string
  /** Number of events in the owner's stream when it claimed: its write stands there or nowhere. */
  version: number
}

/** The streams of the records that claim values. */
export interface ClaimOwners {
  /** Whether the record has the claimed value now, and the number of events of its stream. */
  ask(owner: string, claim: UniqueClaim): Promise<{ holds: boolean; version: number }>
  /**
   * Appends to the record's stream, at that version, an event that changes nothing, so that the log refuses a write
   * that was decided before. False when the stream now has other events.
   */
  fence(owner: string, version: number, context: ClaimContext): Promise<boolean>
}

export interface ClaimContext {
  ids: IdSource
  metadata: EventMetadata
}

/** `scope` is the organization, or empty for a value that is unique in the whole installation. Values compare without case. */
export const uniqueClaim = (
  keyring: Keyring,
  noun: string,
  field: string,
  scope: string,
  value: string,
  /** Field that a refusal names instead. */
  shownField = field,
): UniqueClaim => ({
  noun,
  field: shownField,
  stream: `${noun}-by-${nameOf(keyring, [noun, field, scope, normalizeKey(value)].join('\u0000'))}`,
})

const NAMES_KEPT = 1_000
const names = new WeakMap<Keyring, RecentMap<string, string>>()

/** One command asks for the same claim several times, and each name costs 5 µs. */
const nameOf = (keyring: Keyring, text: string): string => {
  const known = names.get(keyring) ?? new RecentMap<string, string>(NAMES_KEPT)
  names.set(keyring, known)
  const name = known.get(text) ?? keyring.hmac('unique', text).toString('hex')
  known.set(text, name)
  return name
}

export const normalizeKey = (value: string): string => normalized(value).trim().toLowerCase()

/** The record that the claim names; its own stream tells whether it holds the value. */
export const claimOwner = async (log: Pick<EventLog, 'read'>, claim: UniqueClaim): Promise<string | undefined> =>
  (await readClaim(log, claim)).claimant?.owner

const TRIES = 5

/**
 * Takes unique values for the writes of one record, in one command. A take is bound to the version of the record's
 * stream that it was given, so the state is loaded first: a record that takes it over in between appends an event
 * there, and the log refuses the write instead of undoing it later.
 */
export class ClaimTaker {
  private readonly log: EventLog
  private readonly owner: string
  private readonly owners: ClaimOwners
  private readonly context: ClaimContext
  private readonly taken = new Set<string>()

  constructor(log: EventLog, owner: string, owners: ClaimOwners, context: ClaimContext) {
    this.log = log
    this.owner = owner
    this.owners = owners
    this.context = context
  }

  /**
   * Call it right before the append at `version`, also when the owner is named already, and again after a lost race.
   * @throws Failure key_in_use when another record has the value, or took it over during this command; conflict.
   */
  async take(claim: UniqueClaim, version: number): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      // Values of something new are rarely claimed: where one is, the append finds out. A change that is asked for again
      // would be told by the log that its first claim stands, though another record has taken the value since.
      const isLikelyFree = version === 0 && tries === 0
      const { claimant, events } = isLikelyFree ? UNCLAIMED : await readClaim(this.log, claim)
      const isOthers = claimant !== undefined && claimant.owner !== this.owner
      if (isOthers && (this.taken.has(claim.stream) || !(await this.isFree(claim, claimant))))
        throw taken(`/${claim.field}`)
      const fact = { type: `${claim.noun}KeyClaimed`, data: { owner: this.owner, version } satisfies Claimant }
      const { ids, metadata } = this.context
      if ((await appendFacts(this.log, claim.stream, [fact], [ids.next()], events, metadata)) === undefined) continue
      this.taken.add(claim.stream)
      return
    }
    throw new Failure('conflict', {
      message: `Others are asking for the same ${claim.field} at the same time; try again.`,
      retryAfterSeconds: 1,
    })
  }

  /** Whether the named record neither has the value nor can still write it. */
  private async isFree(claim: UniqueClaim, { owner, version }: Claimant): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const now = await this.owners.ask(owner, claim)
      if (now.holds) return false
      // Its stream has moved on since: its pending write there is refused already.
      if (now.version > version) return true
      if (await this.owners.fence(owner, now.version, this.context)) return true
    }
    return false
  }
}

interface ReadClaim {
  claimant?: Claimant
  events: number
}

const UNCLAIMED: ReadClaim = { events: 0 }

const readClaim = async (log: Pick<EventLog, 'read'>, { stream }: UniqueClaim): Promise<ReadClaim> => {
  const [last] = await log.read(stream, 'end', 1, 'backwards')
  return last === undefined ? UNCLAIMED : { claimant: decodeJson<Claimant>(last.data), events: last.revision + 1 }
}
