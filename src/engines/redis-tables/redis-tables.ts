import { type NumberRows, type Row, type RowChange, rowChangesOf, type TableDeclaration } from '../../kernel/table.ts'
import type { Examination } from '../examination.ts'
import {
  type Checkpoint,
  type CheckpointMove,
  type Conditions,
  type Counted,
  type Find,
  type Found,
  type Grouping,
  isRowId,
  type StoredRow,
  type TableStore,
  type Taken,
} from '../table-store.ts'
import { Announcements } from './announcements.ts'
import { newToken } from './changes.ts'
import { Commits } from './commits.ts'
import { connectRedis, type RedisConnection } from './connection.ts'
import { countGroups } from './count.ts'
import { Epoch } from './epoch.ts'
import { examineServers } from './examine.ts'
import { down } from './failures.ts'
import { KnownPages } from './known-pages.ts'
import {
  assertId,
  checkpointOf,
  consumerKeys,
  type KnownTable,
  placeKeys,
  Places,
  TableEnded,
  tableKeys,
} from './places.ts'
import { READ_ROWS, readMany, Reads } from './reads.ts'
import { readRedisUrl } from './redis-url.ts'
import { Registry } from './registry.ts'
import { ShownNames } from './shown-names.ts'
import { SingleRows } from './single-rows.ts'
import { rowArguments } from './steps.ts'
import { unpackRow } from './terms.ts'

export interface RedisOptions {
  /**
   * `redis(s)://user:password@host:6379/0`. `?prefix=` (default `wm`) separates installations, `?sentinel=` names a
   * master, `?also=` further servers or sentinels, `?ca=` a certificate file. A cluster is recognized.
   */
  url: string
  /** Longest time of one command before the engine counts as down (default 5 s). */
  deadlineMs?: number
}

const SCAN_ROWS = 500

/** Tables on a Redis 7 server, cluster, or master behind sentinels. @throws Failure engine_down; Error for a URL or a server that is not fit */
export const openRedisTables = async ({ url, deadlineMs = 5_000 }: RedisOptions): Promise<TableStore> => {
  const read = readRedisUrl(url)
  const connection = await connectRedis(read, deadlineMs)
  const tables = new RedisTables(connection, new Places(read.prefix))
  try {
    await tables.open()
    return tables
  } catch (error) {
    await tables.close()
    throw error
  }
}

class RedisTables implements TableStore {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly registry: Registry
  private readonly commits: Commits
  private readonly reads: Reads
  private readonly singles: SingleRows
  private readonly epoch: Epoch
  private readonly pages: KnownPages
  private readonly names: ShownNames
  private readonly announcements: Announcements

  constructor(connection: RedisConnection, places: Places) {
    this.connection = connection
    this.places = places
    this.registry = new Registry(connection, places)
    this.commits = new Commits(connection, places, this.registry)
    this.reads = new Reads(connection)
    this.singles = new SingleRows(connection, places)
    this.epoch = new Epoch(connection, places, this.registry)
    this.pages = new KnownPages((key) => this.epoch.confirm(key))
    this.names = new ShownNames(connection, places.prefix)
    this.announcements = new Announcements(connection, places.prefix)
    this.epoch.onLoss(() => this.announcements.listenAgain())
  }

  open(): Promise<void> {
    return this.epoch.open()
  }

  showAs(name: string): Promise<void> {
    return this.names.show(name)
  }

  shown(): Promise<ReadonlySet<string>> {
    return this.names.all()
  }

  tell(text: string): Promise<void> {
    return this.announcements.tell(text)
  }

  hear(listener: (text: string) => void): void {
    this.announcements.hear(listener)
  }

  isLost(table: string): boolean {
    return this.registry.tableOf(table).isLost
  }

  onLoss(listener: () => void): void {
    this.epoch.onLoss(listener)
  }

  declare(table: TableDeclaration): Promise<void> {
    return this.registry.declare(table)
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    return (await this.getMany<R>(table, scope, [id]))[0]
  }

  getMany<R extends Row>(name: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]> {
    return this.steady(name, async (table) => {
      if (ids.length === 0) return []
      const asked = ids.length === 1 ? ids.filter(isRowId) : [...new Set(ids)].filter(isRowId)
      const found = new Map<string, R>()
      for (const [i, bytes] of (await this.bytesOf(table, scope, asked)).entries())
        if (bytes !== null) found.set(asked[i], unpackRow<R>(bytes))
      if (found.size < asked.length) await this.confirmAbsent(table, scope, asked, found)
      return ids.map((id) => found.get(id))
    })
  }

  find<R extends Row>(name: string, scope: string, question: Find): Promise<Found<R>> {
    return this.steady(name, async (table) => {
      const place = { connection: this.connection, table, key: this.places.ofScope(table, scope), scope }
      return (await this.pages.find(place, question)) as Found<R>
    })
  }

  countBy(name: string, scope: string, questions: readonly Conditions[], grouping: Grouping): Promise<Counted[]> {
    return this.steady(name, (table) => {
      const place = { connection: this.connection, table, key: this.places.ofScope(table, scope), scope }
      return countGroups(place, (question) => this.find(name, scope, question), questions, grouping)
    })
  }

  async *scan<R extends Row>(name: string, scope: string): AsyncGenerator<StoredRow<R>> {
    const table = this.registry.readable(name)
    if (table.declaration.lives === 'row') throw new Error(`rows of ${name} live by themselves and are not scanned`)
    let after: string | undefined
    for (;;) {
      const question = { limit: SCAN_ROWS, ...(after !== undefined && { after }) }
      const { rows, next } = await this.find<R>(name, scope, question)
      yield* rows
      if (next === null) return
      after = next
    }
  }

  async *scanAll<R extends Row>(name: string): AsyncGenerator<StoredRow<R>> {
    const table = this.registry.readable(name)
    if (table.declaration.lives === 'row') yield* this.singles.scan<R>(table)
    else for (const scope of await this.registry.scopesOf(table.generation)) yield* this.scan<R>(name, scope)
  }

  async commit(changes: readonly RowChange[], move?: CheckpointMove, numbers?: NumberRows): Promise<void> {
    await this.commits.commit(numbers === undefined ? changes : [...changes, ...rowChangesOf(numbers)], move)
  }

  async take(consumer: string): Promise<Taken> {
    const key = this.places.ofConsumer(consumer)
    const answer = (await this.connection.fcall('take', [key, ...consumerKeys(key)], [])) as Buffer[]
    // Also its previous owner's writes without a checkpoint: the new one finds those rows, and writes nothing.
    await this.connection.replicated([key, ...this.epoch.marks])
    const [at, fence] = answer.map(String)
    return { at: checkpointOf(at), fence: Number(fence) }
  }

  async putIfAbsent<R extends Row>(change: RowChange & { row: R }): Promise<R | undefined> {
    const table = this.registry.writable(change.table)
    const { scope, id } = change
    assertId(id)
    if (table.declaration.lives === 'row') return this.singles.putIfAbsent(table, change)
    const key = this.places.ofScope(table, scope)
    await this.registry.noteScope(table, scope)
    const [ends, bytes, terms] = rowArguments(table, change)
    const there = await this.commits.inTurn([key], () =>
      this.connection.fcall(
        'put_if_absent',
        [...placeKeys(key), ...tableKeys(key, table)],
        [table.generation, newToken(), id, ends, bytes, terms],
      ),
    )
    return there === null ? undefined : unpackRow<R>(there as Buffer)
  }

  async increment(scope: string, id: string, windowMs: number): Promise<{ count: number; expiresAt: number }> {
    const key = this.places.ofCounter(scope, id)
    const args = [String(Math.max(1, Math.ceil(windowMs)))]
    const [count, expiresAt] = (await this.connection.fcall('increment', [key], args)) as [number, Buffer]
    return { count, expiresAt: Number(expiresAt) }
  }

  async checkpoint(consumer: string): Promise<Checkpoint | undefined> {
    const key = `${this.places.ofConsumer(consumer)}:consumer`
    const at = (await this.connection.call(key, ['HGET', key, 'at'])) as Buffer | null
    if (at !== null) return checkpointOf(String(at))
    await this.epoch.confirm(key)
    return undefined
  }

  promote(tables: readonly string[], consumer: string): Promise<void> {
    return this.registry.promote(tables, consumer)
  }

  reset(tables: readonly string[], consumer: string): Promise<void> {
    return this.registry.reset(tables, consumer)
  }

  async ping(): Promise<void> {
    await this.connection.takesWrites()
    if (!this.epoch.isWhole) throw down(new Error('what was lost, or is of another version, is not built'))
  }

  examine(): Promise<Examination> {
    return examineServers(this.connection)
  }

  async close(): Promise<void> {
    this.epoch.close()
    this.announcements.close()
    await this.connection.close()
  }

  /** @throws Failure engine_down where the rows are absent because their server lost them. */
  private async confirmAbsent(
    table: KnownTable,
    scope: string,
    asked: readonly string[],
    found: ReadonlyMap<string, Row>,
  ): Promise<void> {
    if (table.declaration.lives !== 'row') return this.epoch.confirm(this.places.ofScope(table, scope))
    const absent = asked.filter((id) => !found.has(id))
    await Promise.all(absent.map((id) => this.epoch.confirm(this.places.ofRow(table, scope, id))))
  }

  /** Result of a read of a table, repeated where other rows replaced its own meanwhile: old ones are deleted then. */
  private async steady<Answer>(name: string, read: (table: KnownTable) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const table = this.registry.readable(name)
      const isSame = (): boolean => this.registry.tableOf(name).generation === table.generation
      try {
        const answer = await read(table)
        if (isSame()) return answer
      } catch (error) {
        if (!(error instanceof TableEnded)) throw error
        // Another process replaced it.
        if (isSame()) await this.registry.read()
        if (isSame()) throw down(error)
      }
    }
  }

  private async bytesOf(table: KnownTable, scope: string, ids: readonly string[]): Promise<readonly (Buffer | null)[]> {
    if (table.declaration.lives === 'row') return Promise.all(ids.map((id) => this.singles.bytes(table, scope, id)))
    if (ids.length === 0) return []
    const place = this.places.ofScope(table, scope)
    return ids.length > READ_ROWS ? readMany(this.connection, table, place, ids) : this.reads.rows(table, place, ids)
  }
}
