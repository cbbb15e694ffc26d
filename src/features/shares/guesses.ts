import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'

/** Networks that tried too many tokens, until they may continue. Written directly, not by a projection. */
export const FOLLOW_BLOCKS: TableDeclaration = { name: 'follow-blocks', version: 1, lives: 'row' }

/** Invalid tokens from one network: many people with expired links may share it. */
const WRONG_MAX = 50
const WINDOW_MS = 15 * 60_000

type BlockRow = { until: number }

/** Counts invalid tokens, across all nodes. A retried one counts once: a page may be left open. */
export class Guesses {
  private readonly tables: Pick<TableStore, 'get' | 'increment' | 'commit'>
  private readonly keyring: Pick<Keyring, 'hmac'>

  constructor(services: { tables: Pick<TableStore, 'get' | 'increment' | 'commit'>; keyring: Pick<Keyring, 'hmac'> }) {
    this.tables = services.tables
    this.keyring = services.keyring
  }

  /** @throws Failure rate_limited, also for valid tokens */
  async admit(network: string, now: number): Promise<void> {
    const row = await this.tables.get<BlockRow>(FOLLOW_BLOCKS.name, NO_ORGANIZATION, this.idOf(network))
    if (row === undefined || row.until <= now) return
    throw new Failure('rate_limited', {
      message: 'Too many links that lead nowhere; try again later.',
      retryAfterSeconds: Math.ceil((row.until - now) / 1000),
    })
  }

  async noteWrong(network: string, token: string): Promise<void> {
    const again = await this.tables.increment(NO_ORGANIZATION, this.idOf(`${network} ${token}`), WINDOW_MS)
    if (again.count > 1) return
    const id = this.idOf(network)
    const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, id, WINDOW_MS)
    if (count < WRONG_MAX) return
    const row: BlockRow = { until: expiresAt }
    await this.tables.commit([{ table: FOLLOW_BLOCKS.name, scope: NO_ORGANIZATION, id, row, expiresAt }])
  }

  // Hashed, so that no table holds addresses or tried tokens.
  private idOf(what: string): string {
    return `follow-${this.keyring.hmac('follow-guesses', what).toString('base64url')}`
  }
}
