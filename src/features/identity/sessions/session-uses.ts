import type { TableStore } from '../../../engines/table-store.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Logger } from '../../../kernel/logger.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../../kernel/table.ts'

/** Last uses of tokens, by `jti`, to some minutes. Written directly, not by a projection. */
const SESSION_USES: TableDeclaration = { name: 'session-uses', version: 1, lives: 'row' }

type UseRow = { lastUsedAt: number }

const NOTED_EVERY_MS = 5 * 60_000
const REMEMBERED_MAX = 50_000

export interface SessionUsesOptions {
  tables: Pick<TableStore, 'declare' | 'getMany' | 'commit'>
  clock: Clock
  logger: Logger
}

/** Records uses of tokens, some minutes apart. */
export class SessionUses {
  private readonly options: SessionUsesOptions
  private readonly noted = new Map<string, number>()
  private declared: Promise<void> | undefined

  constructor(options: SessionUsesOptions) {
    this.options = options
  }

  /** Never delays the caller; failed writes are retried at the next use. */
  note(jti: string, expiresAt: number): void {
    const now = this.options.clock.now()
    const before = this.noted.get(jti)
    if (before !== undefined && Math.abs(now - before) < NOTED_EVERY_MS) return
    this.noted.delete(jti)
    this.noted.set(jti, now)
    if (this.noted.size > REMEMBERED_MAX) this.noted.delete(this.noted.keys().next().value as string)
    void this.write(jti, now, expiresAt).catch((error: unknown) => {
      this.noted.delete(jti)
      this.options.logger.warn('the use of a token could not be noted', { error: String(error) })
    })
  }

  /** ms since the epoch, in the order of the tokens. */
  async lastUsed(jtis: readonly string[]): Promise<(number | undefined)[]> {
    await this.declare()
    const rows = await this.options.tables.getMany<UseRow>(SESSION_USES.name, NO_ORGANIZATION, jtis)
    return rows.map((row) => row?.lastUsedAt)
  }

  private async write(jti: string, lastUsedAt: number, expiresAt: number): Promise<void> {
    await this.declare()
    const row: UseRow = { lastUsedAt }
    await this.options.tables.commit([{ table: SESSION_USES.name, scope: NO_ORGANIZATION, id: jti, row, expiresAt }])
  }

  private async declare(): Promise<void> {
    this.declared ??= this.options.tables.declare(SESSION_USES)
    try {
      await this.declared
    } catch (error) {
      this.declared = undefined
      throw error
    }
  }
}
