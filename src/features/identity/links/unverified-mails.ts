import type { TableStore } from '../../../engines/table-store.ts'
import { Failure } from '../../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import type { Services } from '../../../kit/services.ts'
import type { LinkKind } from '../events.ts'
import { People } from '../people.ts'

const DAY_MS = 86_400_000
/** Mails per day of any kind. */
const SHARED_MAX = 3
/** Kinds with one more mail of their own: requests for others cannot keep these from an owner. */
const KEPT_FOR: readonly string[] = ['reset', 'invitation']

/** Subject of a mail of the service itself; notices have no link. */
export type MailSubject = LinkKind | 'notice' | 'export'

/**
 * Limits mails of the service itself to an unverified address: five a day, from all senders of every organization.
 * Counted across all nodes, and kept over restarts.
 */
export class UnverifiedMails {
  private readonly people: People
  private readonly tables: Pick<TableStore, 'increment'>
  private readonly keyring: Services['keyring']

  constructor(services: Pick<Services, 'log' | 'tables' | 'keyring'>) {
    this.people = new People(services)
    this.tables = services.tables
    this.keyring = services.keyring
  }

  /** Counts a mail; returns the time of the next allowed one (ms since the epoch), or undefined if it may be sent. */
  async count(email: string, subject: MailSubject): Promise<number | undefined> {
    if ((await this.people.findByEmail(email))?.state.isVerified === true) return undefined
    if (KEPT_FOR.includes(subject) && (await this.increment(subject, email)).count <= 1) return undefined
    const { count, expiresAt } = await this.increment('any', email)
    return count <= SHARED_MAX ? undefined : expiresAt
  }

  /** Counts a mail whose requester may be told of the limit. @throws Failure rate_limited */
  async demand(email: string, subject: MailSubject, now: number): Promise<void> {
    const until = await this.count(email, subject)
    if (until === undefined) return
    throw new Failure('rate_limited', {
      message:
        'This address was mailed as often as an address may be in a day that nobody has confirmed; try again later.',
      retryAfterSeconds: Math.max(1, Math.ceil((until - now) / 1000)),
    })
  }

  private increment(place: string, email: string): Promise<{ count: number; expiresAt: number }> {
    // Hashed, so that no table holds typed addresses.
    const key = this.keyring.hmac('mail-limits', `unverified:${place}:${normalizeKey(email)}`).toString('base64url')
    return this.tables.increment(NO_ORGANIZATION, `mail-${key}`, DAY_MS)
  }
}
