import { randomBytes } from 'node:crypto'
import type { TableDeclaration } from '../../kernel/table.ts'
import type { RedisConnection } from './connection.ts'
import { down } from './failures.ts'
import { changesKey, ENDED, type KnownTable, type Places, tableKeys } from './places.ts'
import { indexNames } from './terms.ts'

/** The field of the registry with the present epoch. */
const EPOCH = '#epoch'

/** Longer than any process goes without reading the registry. */
const ENDED_MS = 60_000

/** A fraction of a millisecond of the server. */
const SCOPES_AT_ONCE = 1_000

interface TableRecord {
  generation: string
  version: number
  /** Its rows are lost and wait to be built. */
  lost?: boolean
}

/** The tables, the generation of keys of each, and whether it was lost. */
export class Registry {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly tables = new Map<string, KnownTable>()
  private readonly knownScopes = new Set<string>()
  /** Counts this process's changes to its knowledge of the tables: anything read before the last one is out of date. */
  private changes = 0
  /** Whether another process took tables of a projection. Its owner takes them back, so the two do not alternate. */
  private wereTaken = false

  constructor(connection: RedisConnection, places: Places) {
    this.connection = connection
    this.places = places
  }

  async declare(declaration: TableDeclaration): Promise<void> {
    const { name, version, lives = 'organization', isProjected = false } = declaration
    // Rows that live by themselves stay where the registry was lost: they are found again under the same name.
    const generation = lives === 'row' ? `${name}.${version}` : randomBytes(6).toString('hex')
    const indexes = indexNames(declaration)
    const args = [name, String(version), generation, lives, isProjected ? '1' : '0', indexes.join('\n')]
    const answer = (await this.connection.fcall('declare', [this.places.registry], args)) as Buffer[]
    const [inForce, replaced, isLost, replacedIndexes] = answer.map(String)
    if (inForce === generation) await this.connection.replicated([this.places.registry])
    const table = { declaration, generation: inForce, isLost: isLost === '1', isForeign: false, indexes }
    this.tables.set(name, table)
    this.changes++
    if (replaced === '') return
    const gone = replacedIndexes === '' ? indexes : replacedIndexes.split('\n')
    await this.dropRows({ ...table, generation: replaced, indexes: gone }, true)
  }

  /** @throws Error for a table that was not declared. */
  tableOf(name: string): KnownTable {
    const table = this.tables.get(name)
    if (table === undefined) throw new Error(`table ${name} is not declared`)
    return table
  }

  /** The table, for writing. @throws Failure engine_down for one that another version of Waymark has declared since */
  writable(name: string): KnownTable {
    const table = this.tableOf(name)
    if (table.isForeign) throw down(new Error(`another version of Waymark has declared ${name}`))
    return table
  }

  /** The table, for reading. @throws Failure engine_down also for one whose rows wait to be built */
  readable(name: string): KnownTable {
    const table = this.writable(name)
    if (table.isLost) throw down(new Error(`the rows of ${name} are being built anew`))
    return table
  }

  /** Whether all tables may be read. */
  get isWhole(): boolean {
    return [...this.tables.values()].every(({ isLost, isForeign }) => !isLost && !isForeign)
  }

  /** The present epoch; empty where there was none. */
  async epoch(): Promise<string> {
    const { registry } = this.places
    return String((await this.connection.call(registry, ['HGET', registry, EPOCH])) ?? '')
  }

  /** Begins an epoch, unless one after `before` has: all tables get new, empty generations. Answers the ended ones. */
  async begin(before: string, epoch: string): Promise<string[] | undefined> {
    const answer = (await this.connection.fcall('begin', [this.places.registry], [before, epoch])) as Buffer[]
    const [inForce, ...ended] = answer.map(String)
    // The registry's lost generations are known here.
    const known = [...this.tables.values()].map(({ generation }) => generation)
    return inForce === epoch ? [this.places.epoch, ...known, ...ended] : undefined
  }

  async promote(tables: readonly string[], consumer: string): Promise<void> {
    const next = `${this.places.ofConsumer(`${consumer}@next`)}:consumer`
    const live = `${this.places.ofConsumer(consumer)}:consumer`
    const built = (await this.connection.call(next, ['HGET', next, 'at'])) as Buffer | null
    // The built tables have been lost.
    if (built === null) throw down(new Error(`nothing is built of ${consumer}`))
    // Where the answer of this call was lost, the built tables are in place: they have not ended.
    const ended = tables.flatMap((name) => {
      const [live, next] = [this.tables.get(name), this.tables.get(`${name}@next`)]
      return live !== undefined && next !== undefined && next.generation !== live.generation ? [live] : []
    })
    // Nobody reads a lost table: after a crash between the two it is rebuilt, and not in its place.
    if (ended.some(({ isLost }) => isLost)) await this.connection.call(live, ['HSET', live, 'at', built])
    await this.connection.fcall('promote', [this.places.registry], [this.places.epoch, ...tables])
    await this.connection.replicated([this.places.registry])
    for (const name of tables) this.putInPlace(name)
    await this.connection.call(live, ['HSET', live, 'at', built])
    await this.connection.call(next, ['HDEL', next, 'at'])
    // Deletes the rows of before, whatever has been read since of the new ones.
    for (const table of ended) await this.dropRows(table, true)
  }

  async reset(tables: readonly string[], consumer: string): Promise<void> {
    const key = `${this.places.ofConsumer(consumer)}:consumer`
    await this.connection.call(key, ['HDEL', key, 'at'])
    for (const name of tables) await this.dropRows(this.tableOf(name), false)
  }

  /** In steps. Scopes are only ever added: a walk that missed some, as another server took over, finds too few. */
  async scopesOf(generation: string): Promise<string[]> {
    const key = this.places.scopesOf(generation)
    const scopes = new Set<string>()
    do {
      let cursor = '0'
      do {
        const scan = ['SSCAN', key, cursor, 'COUNT', String(SCOPES_AT_ONCE)]
        const [next, some] = (await this.connection.call(key, scan)) as [Buffer, Buffer[]]
        cursor = String(next)
        for (const scope of some) scopes.add(String(scope))
      } while (cursor !== '0')
    } while (scopes.size < Number(await this.connection.call(key, ['SCARD', key])))
    return [...scopes].sort()
  }

  async noteScope({ generation }: KnownTable, scope: string): Promise<void> {
    const known = `${generation}:${scope}`
    if (this.knownScopes.has(known)) return
    const key = this.places.scopesOf(generation)
    await this.connection.call(key, ['SADD', key, scope])
    // Another server than that of the rows may keep it, and nobody scans a forgotten scope.
    if (this.connection.isCluster) await this.connection.replicated([key])
    this.knownScopes.add(known)
  }

  /** Writes the scopes again, for servers that took over from others. */
  async noteScopesAgain(): Promise<void> {
    const inForce = new Set([...this.tables.values()].map(({ generation }) => generation))
    for (const known of this.knownScopes) {
      const [generation] = known.split(':', 1)
      const key = this.places.scopesOf(generation)
      if (inForce.has(generation)) await this.connection.call(key, ['SADD', key, known.slice(generation.length + 1)])
      else this.knownScopes.delete(known)
    }
  }

  /** Reads the tables that other processes replaced, and restores the registry on servers that lost it. */
  async read(): Promise<void> {
    const { registry } = this.places
    const { changes } = this
    const flat = (await this.connection.call(registry, ['HGETALL', registry])) as Buffer[]
    if (changes !== this.changes) return this.read()
    const stored = new Map<string, TableRecord>()
    for (let i = 0; i + 1 < flat.length; i += 2)
      if (String(flat[i]) !== EPOCH) stored.set(String(flat[i]), JSON.parse(String(flat[i + 1])) as TableRecord)
    for (const [name, table] of this.tables) {
      const record = stored.get(name)
      if (record === undefined) {
        if (!name.endsWith('@next')) await this.declare(table.declaration)
      } else {
        const isForeign = record.version !== table.declaration.version
        if (isForeign && !table.isForeign && table.declaration.isProjected === true) this.wereTaken = true
        this.tables.set(name, { ...table, generation: record.generation, isLost: record.lost === true, isForeign })
      }
    }
  }

  /** Whether another version has declared tables of a projection since the last call. */
  haveBeenTaken(): boolean {
    const { wereTaken } = this
    this.wereTaken = false
    return wereTaken
  }

  /** Deletes the keys of ended generations and epochs. */
  async dropEnded(ended: ReadonlySet<string>): Promise<void> {
    for await (const keys of this.connection.keys(this.places.all)) {
      for (const key of keys) {
        const name = this.places.generationIn(key)
        if (name !== undefined && ended.has(name)) await this.connection.call(key, ['UNLINK', key])
      }
    }
  }

  private putInPlace(name: string): void {
    const built = this.tables.get(`${name}@next`)
    if (built === undefined) return
    const { isProjected } = this.tableOf(name).declaration
    this.tables.set(name, { ...built, declaration: { ...built.declaration, name, isProjected } })
    this.tables.delete(`${name}@next`)
    this.changes++
  }

  /** An ended table says so for a while: other processes read it until they know its successor, and find nothing. */
  private async dropRows(table: KnownTable, hasEnded: boolean): Promise<void> {
    const { generation } = table
    for (const scope of await this.scopesOf(generation)) {
      const place = this.places.ofScope(table, scope)
      const keys = tableKeys(place, table)
      await (hasEnded ? this.end(place, table, keys) : this.connection.call(place, ['UNLINK', ...keys]))
    }
    // Including those that another process has dropped, and that are noted nowhere any more.
    for (const known of this.knownScopes) if (known.startsWith(`${generation}:`)) this.knownScopes.delete(known)
    const scopes = this.places.scopesOf(generation)
    await this.connection.call(scopes, ['UNLINK', scopes])
    if (table.declaration.lives !== 'row') return
    for await (const keys of this.connection.keys(this.places.rowsPattern(generation)))
      for (const key of keys) await this.connection.call(key, ['UNLINK', key])
  }

  private async end(place: string, table: KnownTable, keys: readonly string[]): Promise<void> {
    const changes = changesKey(place, table)
    await Promise.all([
      this.connection.call(place, ['HSET', changes, 'rows', ENDED]).catch(() => undefined), // where the memory is full
      this.connection.call(place, ['UNLINK', ...keys.filter((key) => key !== changes)]),
      this.connection.call(place, ['PEXPIRE', changes, String(ENDED_MS)]),
    ])
  }
}
