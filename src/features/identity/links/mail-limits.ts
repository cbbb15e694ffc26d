import type { TableStore } from '../../../engines/table-store.ts'
import { Failure } from '../../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'

const HOUR_MS = 3_600_000
/** Mails per hour that an organization may trigger to people whom it names. */
const INVITATIONS_MAX = 1_000
/** Mails per hour to one address, from all senders. */
const TO_ONE_ADDRESS_MAX = 10
/** Links per hour that may be requested or tried from one network address. */
const FROM_ONE_ADDRESS_MAX = 300

/** Limits mails that others trigger in our name, and attempts to use links. Counted across all nodes. */
export class MailLimits {
  private readonly tables: Pick<TableStore, 'increment'>
  private readonly keyring: Keyring

  constructor(tables: Pick<TableStore, 'increment'>, keyring: Keyring) {
    this.tables = tables
    this.keyring = keyring
  }

  /** For public operations. @throws Failure rate_limited */
  async countFrom(address: string, now: number): Promise<void> {
    await this.count(`from:${address}`, FROM_ONE_ADDRESS_MAX, now)
  }

  /** Counts an attempt, successful or not. @throws Failure rate_limited */
  async countSignUp(network: string, max: number, now: number): Promise<void> {
    await this.count(`signed-up-from:${network}`, max, now, 'Too many sign-ups from your address; try again later.')
  }

  /** @throws Failure rate_limited */
  async countInvitation(organizationId: string, email: string, now: number): Promise<void> {
    await this.count(`invited-by:${organizationId}`, INVITATIONS_MAX, now)
    await this.count(`invited:${organizationId}:${normalizeKey(email)}`, TO_ONE_ADDRESS_MAX, now)
  }

  /** Whether another mail may be sent there; the requester is not told. */
  async mayRemind(email: string): Promise<boolean> {
    const { count } = await this.tables.increment(NO_ORGANIZATION, this.keyOf(`forgot:${normalizeKey(email)}`), HOUR_MS)
    return count <= TO_ONE_ADDRESS_MAX
  }

  private async count(what: string, max: number, now: number, message?: string): Promise<void> {
    const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, this.keyOf(what), HOUR_MS)
    if (count <= max) return
    throw new Failure('rate_limited', { message, retryAfterSeconds: Math.max(1, Math.ceil((expiresAt - now) / 1000)) })
  }

  // Hashed, so that no table holds typed addresses.
  private keyOf(what: string): string {
    return `mail-${this.keyring.hmac('mail-limits', what).toString('base64url')}`
  }
}
