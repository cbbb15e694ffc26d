import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import type { GuessGuard } from './passwords.ts'

/** Identities and addresses that failed too often, until they may try again. Written at once, not by a projection. */
const LOGIN_BLOCKS: TableDeclaration = { name: 'login-blocks', version: 1, lives: 'row' }

const FAILURES_MAX = 5
const FAILURE_WINDOW_MS = 15 * 60_000

/** Counts failed logins over all nodes, by e-mail (whether anybody has it or not) and by address. */
export class LoginThrottle {
  private readonly tables: Pick<TableStore, 'declare' | 'getMany' | 'increment' | 'commit'>
  private readonly keyring: Keyring
  private declared: Promise<void> | undefined

  constructor(tables: Pick<TableStore, 'declare' | 'getMany' | 'increment' | 'commit'>, keyring: Keyring) {
    this.tables = tables
    this.keyring = keyring
  }

  /** Counts for one login. */
  guard(email: string, address: string, now: number): GuessGuard {
    return { admit: () => this.admit(email, address, now), noteFailure: () => this.noteFailure(email, address) }
  }

  /** @throws Failure rate_limited while one of both is blocked. */
  private async admit(email: string, address: string, now: number): Promise<void> {
    await this.declare()
    const rows = await this.tables.getMany<{ until: number }>(
      LOGIN_BLOCKS.name,
      NO_ORGANIZATION,
      this.keysOf(email, address),
    )
    const until = Math.max(...rows.map((row) => row?.until ?? 0))
    if (until <= now) return
    throw new Failure('rate_limited', {
      message: 'Too many failed logins; try again later.',
      retryAfterSeconds: Math.ceil((until - now) / 1000),
    })
  }

  private async noteFailure(email: string, address: string): Promise<void> {
    await Promise.all(
      this.keysOf(email, address).map(async (id) => {
        const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, id, FAILURE_WINDOW_MS)
        if (count < FAILURES_MAX) return
        await this.tables.commit([
          { table: LOGIN_BLOCKS.name, scope: NO_ORGANIZATION, id, row: { until: expiresAt }, expiresAt },
        ])
      }),
    )
  }

  private async declare(): Promise<void> {
    this.declared ??= this.tables.declare(LOGIN_BLOCKS)
    try {
      await this.declared
    } catch (error) {
      this.declared = undefined
      throw error
    }
  }

  // Hashed, so that no table holds what people typed.
  private keysOf(email: string, address: string): string[] {
    return [`identity:${normalizeKey(email)}`, `address:${address}`].map(
      (key) => `login-${this.keyring.hmac('login-throttle', key).toString('base64url')}`,
    )
  }
}
