import { POINTS, TRANSITIONS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { readUuid } from '../../src/engines/clickhouse-sql/native-block.ts'
import { NativeReader, type NativeRows } from '../../src/engines/clickhouse-sql/native-reader.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import type { Wire } from './wire.ts'

const TOKENS = 100

/** A history in memory: rows by their identity, as the engine merges them. It answers no question of SQL. */
export class MemoryHistory {
  /** Of every point that was inserted: `<tracker> <recordedAt>`. */
  readonly points = new Set<string>()
  readonly transitions = new Set<string>()
  private readonly tokens: string[] = []

  insert(table: string, block: Uint8Array, token: string): void {
    const key = `${table} ${token}`
    if (this.tokens.includes(key)) return
    this.tokens.push(key)
    if (this.tokens.length > TOKENS) this.tokens.shift()
    if (table !== POINTS && table !== TRANSITIONS) return
    for (const { rows, columns } of new NativeReader().push(block))
      for (let i = 0; i < rows; i++) {
        if (table === POINTS) this.points.add(pointAt(columns, i))
        else this.transitions.add((columns.get('_id') as string[])[i])
      }
  }
}

/** `<tracker> <ms since the epoch>` of a row. */
const pointAt = (columns: NativeRows['columns'], index: number): string => {
  const times = columns.get('recordedAt') as Uint8Array
  const time = new DataView(times.buffer, times.byteOffset).getBigInt64(index * 8, true)
  return `${readUuid(columns.get('trackerId') as Uint8Array, index * 16)} ${time}`
}

const unanswered = (sql: string): never => {
  throw new Error(`the history of the simulator answers no questions: ${sql.slice(0, 80)}`)
}

/** The port, as one process has it. */
export const openMemoryHistory = (server: MemoryHistory, wire: Wire): HistoryStore => ({
  command: () => wire.call(() => undefined),
  insert: (table, block, token) => {
    const copy = block.slice()
    block.fill(0) // it is handed over
    return wire.call(() => server.insert(table, copy, token))
  },
  erase: () => wire.call(() => undefined),
  // biome-ignore lint/correctness/useYield: nobody asks it
  query: async function* (sql) {
    unanswered(sql)
  },
  rows: async (sql) => unanswered(sql),
  ping: () => wire.call(() => undefined),
  close: async () => undefined,
})
