import type { TableStore } from '../../../engines/table-store.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'

const DAY_MS = 86_400_000
/** Mails of automations from one organization to its users, at addresses that they have confirmed, in a day. */
const OWN_MAX = 10_000
/** The same to all other addresses. */
const FOREIGN_MAX = 2_000
/** The same to one such address, counted for each organization, so that none silences the alerts of another. */
const ONE_FOREIGN_MAX = 50

/** Bounds the mails that automations send in the operator's name. Counted over all nodes. */
export class MailAllowance {
  private readonly tables: Pick<TableStore, 'increment'>
  private readonly keyring: Pick<Keyring, 'hmac'>

  constructor(tables: Pick<TableStore, 'increment'>, keyring: Pick<Keyring, 'hmac'>) {
    this.tables = tables
    this.keyring = keyring
  }

  /** Counts a mail; answers the limit reached and until when (ms since the epoch), or undefined when it may go. */
  async count(
    organizationId: string,
    address: string,
    isForeign: boolean,
  ): Promise<{ error: string; until: number } | undefined> {
    if (!isForeign) return this.over(`own:${organizationId}`, OWN_MAX, `${OWN_MAX} mails of automations a day to users`)
    return (
      (await this.over(
        `foreign-address:${organizationId}:${normalizeKey(address)}`,
        ONE_FOREIGN_MAX,
        `${ONE_FOREIGN_MAX} mails of automations a day to one address that no user has confirmed`,
      )) ??
      (await this.over(
        `foreign:${organizationId}`,
        FOREIGN_MAX,
        `${FOREIGN_MAX} mails of automations a day to addresses that no user has confirmed`,
      ))
    )
  }

  private async over(what: string, max: number, limit: string): Promise<{ error: string; until: number } | undefined> {
    // Hashed, so that no table holds addresses.
    const key = `automation-mail-${this.keyring.hmac('mail-limits', what).toString('base64url')}`
    const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, key, DAY_MS)
    return count <= max ? undefined : { error: `over the limit: ${limit}`, until: expiresAt }
  }
}
