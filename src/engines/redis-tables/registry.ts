import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { TableDeclaration } from '../../kernel/table.ts'
import type { RedisConnection } from './connection.ts'
import type { KnownTable, Places } from './places.ts'
import { indexNames } from './terms.ts'

const REGISTRY_MS = 1_000

/** Which tables there are, and under which generation of keys each lives. */
export class Registry {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly tables = new Map<string, KnownTable>()
  private readonly knownScopes = new Set<string>()
  private readonly closed = new AbortController()

  constructor(connection: RedisConnection, places: Places) {
    this.connection = connection
    this.places = places
  }

  async declare(declaration: TableDeclaration): Promise<void> {
    const { name, version } = declaration
    const args = [name, String(version), newGeneration()]
    const answer = (await this.connection.fcall('declare', this.places.registry, args)) as Buffer[]
    const [generation, replaced] = answer.map(String)
    const table = { declaration, generation, indexes: indexNames(declaration) }
    this.tables.set(name, table)
    if (replaced !== '') await this.dropRows({ ...table, generation: replaced })
  }

  /** @throws Error for a table that was not declared. */
  tableOf(name: string): KnownTable {
    const table = this.tables.get(name)
    if (table === undefined) throw new Error(`table ${name} is not declared`)
    return table
  }

  async promote(tables: readonly string[], consumer: string): Promise<void> {
    const next = `${this.places.ofConsumer(`${consumer}@next`)}:consumer`
    const live = `${this.places.ofConsumer(consumer)}:consumer`
    const built = (await this.connection.call(next, ['HGET', next, 'at'])) as Buffer | null
    await this.connection.fcall('promote', this.places.registry, [...tables])
    for (const name of tables) {
      const ended = this.tables.get(name)
      const table = this.tables.get(`${name}@next`)
      if (table === undefined) continue
      this.tables.set(name, { ...table, declaration: { ...table.declaration, name } })
      this.tables.delete(`${name}@next`)
      if (ended !== undefined) await this.dropRows(ended)
    }
    if (built === null) await this.connection.call(live, ['HDEL', live, 'at'])
    else await this.connection.call(live, ['HSET', live, 'at', built])
    await this.connection.call(next, ['HDEL', next, 'at'])
  }

  async reset(tables: readonly string[], consumer: string): Promise<void> {
    const key = `${this.places.ofConsumer(consumer)}:consumer`
    await this.connection.call(key, ['HDEL', key, 'at'])
    for (const name of tables) await this.dropRows(this.tableOf(name))
  }

  /** Learns within a second what other processes put in the place of tables, and tells a server that lost everything what there is. */
  watch(): void {
    void (async () => {
      while (!this.closed.signal.aborted) {
        await pause(REGISTRY_MS, undefined, { signal: this.closed.signal, ref: false }).catch(() => undefined)
        if (!this.closed.signal.aborted) await this.read().catch(() => undefined)
      }
    })()
  }

  close(): void {
    this.closed.abort()
  }

  async scopesOf(generation: string): Promise<string[]> {
    const key = this.places.scopesOf(generation)
    return ((await this.connection.call(key, ['SMEMBERS', key])) as Buffer[]).map(String).sort()
  }

  async noteScope({ generation }: KnownTable, scope: string): Promise<void> {
    const known = `${generation}:${scope}`
    if (this.knownScopes.has(known)) return
    const key = this.places.scopesOf(generation)
    await this.connection.call(key, ['SADD', key, scope])
    this.knownScopes.add(known)
  }

  private async read(): Promise<void> {
    const { registry } = this.places
    const flat = (await this.connection.call(registry, ['HGETALL', registry])) as Buffer[]
    const stored = new Map<string, { generation: string; version: number }>()
    for (let i = 0; i + 1 < flat.length; i += 2) stored.set(String(flat[i]), JSON.parse(String(flat[i + 1])))
    for (const [name, table] of this.tables) {
      const record = stored.get(name)
      if (record === undefined) {
        const text = JSON.stringify({ generation: table.generation, version: table.declaration.version })
        if (!name.endsWith('@next')) await this.connection.call(registry, ['HSETNX', registry, name, text])
        this.knownScopes.clear()
      } else if (record.generation !== table.generation)
        this.tables.set(name, { ...table, generation: record.generation })
    }
  }

  private async dropRows(table: KnownTable): Promise<void> {
    const { generation } = table
    const suffixes = ['rows', 'terms', 'ids', 'x', ...table.indexes.map((index) => `i:${index}`)]
    for (const scope of await this.scopesOf(generation)) {
      const place = this.places.ofScope(table, scope)
      await this.connection.call(place, ['UNLINK', ...suffixes.map((suffix) => `${place}:${generation}:${suffix}`)])
      this.knownScopes.delete(`${generation}:${scope}`)
    }
    const scopes = this.places.scopesOf(generation)
    await this.connection.call(scopes, ['UNLINK', scopes])
    if (table.declaration.lives !== 'row') return
    for await (const keys of this.connection.keys(this.places.rowsPattern(generation)))
      for (const key of keys) await this.connection.call(key, ['UNLINK', key])
  }
}

const newGeneration = (): string => randomBytes(6).toString('hex')
