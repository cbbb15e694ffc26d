import type { TableStore } from '../../engines/table-store.ts'
import { NO_ORGANIZATION, type Row, type TableDeclaration } from '../../kernel/table.ts'
import { HEALTHY, type ReceiverHealth } from './receiver-health.ts'

/** How receivers were doing, by automation, so that a restart does not press one that is down. */
export const RECEIVER_HEALTH: TableDeclaration = { name: 'dispatch-health', version: 1, lives: 'row' }

/** Keeps the health of receivers; changes are stored together, about once a second. */
export class HealthTable {
  private readonly tables: TableStore
  private changed = new Map<string, ReceiverHealth>()

  constructor(tables: TableStore) {
    this.tables = tables
  }

  async get(automationId: string): Promise<ReceiverHealth> {
    const row =
      this.changed.get(automationId) ?? (await this.tables.get(RECEIVER_HEALTH.name, NO_ORGANIZATION, automationId))
    return (row as ReceiverHealth | undefined) ?? HEALTHY
  }

  put(automationId: string, health: ReceiverHealth): void {
    this.changed.set(automationId, health)
  }

  async store(): Promise<void> {
    if (this.changed.size === 0) return
    const taken = this.changed
    this.changed = new Map()
    try {
      await this.tables.commit(
        [...taken].map(([id, health]) => ({
          table: RECEIVER_HEALTH.name,
          scope: NO_ORGANIZATION,
          id,
          row: health === HEALTHY ? null : ({ ...health } as Row),
        })),
      )
    } catch (error) {
      for (const [id, health] of taken) if (!this.changed.has(id)) this.changed.set(id, health)
      throw error
    }
  }
}
