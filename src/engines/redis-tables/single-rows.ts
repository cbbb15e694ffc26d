import type { Row, RowChange } from '../../kernel/table.ts'
import type { StoredRow } from '../table-store.ts'
import { newToken } from './changes.ts'
import type { RedisConnection } from './connection.ts'
import { down } from './failures.ts'
import type { KnownTable, Places } from './places.ts'
import { endOf } from './steps.ts'
import { packed, unpackRow } from './terms.ts'

/** Rows that live by themselves: each has a key of its own, which a failover must not forget. */
export class SingleRows {
  private readonly connection: RedisConnection
  private readonly places: Places

  constructor(connection: RedisConnection, places: Places) {
    this.connection = connection
    this.places = places
  }

  async bytes(table: KnownTable, scope: string, id: string): Promise<Buffer | null> {
    const key = this.places.ofRow(table, scope, id)
    return (await this.connection.call(key, ['GET', key])) as Buffer | null
  }

  /** Stores the row unless one exists, which is answered. */
  async putIfAbsent<R extends Row>(table: KnownTable, change: RowChange & { row: R }): Promise<R | undefined> {
    const { scope, id, row, expiresAt } = change
    const key = this.places.ofRow(table, scope, id)
    const keys = [key, `${key}:by`]
    const args = [newToken(), packed(row), expiresAt === undefined ? '' : endOf(expiresAt)]
    const server = this.connection.serverOf(key)
    const there = (await this.connection.fcall('put_single', keys, args)) as Buffer | null
    if (there !== null) return unpackRow<R>(there)
    try {
      await this.connection.replicated([key])
      if (this.connection.serverOf(key) !== server)
        throw down(new Error(`${server} has given its place to another server`))
      return undefined
    } catch (error) {
      // If another process has put its own meanwhile, after a failover that lost this one, that one stays.
      await this.connection.fcall('take_back', keys, args).catch(() => undefined) // a repeat finds it for a while
      throw error
    }
  }

  async *scan<R extends Row>(table: KnownTable): AsyncGenerator<StoredRow<R>> {
    for await (const keys of this.connection.keys(this.places.rowsPattern(table.generation))) {
      for (const key of keys) {
        const [, scope, id] = /\{r:[^:]*:([^:]*):([\s\S]*)\}$/.exec(key) ?? []
        if (id === undefined) continue // a mark for waits on replicas, or of the writer of a row
        const bytes = await this.bytes(table, scope, id)
        if (bytes !== null) yield { scope, id, row: unpackRow<R>(bytes) }
      }
    }
  }
}
