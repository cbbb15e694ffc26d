import type { Clock } from '../../kernel/clock.ts'
import type { Row } from '../../kernel/table.ts'
import { bufferOf, rowKeyOf, spaceKey, type TableEnvironment, type TableRecord, unpack } from './layout.ts'
import { storedBytes } from './terms.ts'
import { RowMemory } from '../page-memory.ts'
import { isRowId, type StoredRow } from '../table-store.ts'

const SCAN_ROWS_AT_ONCE = 500
const SCOPES_CACHED_MAX = 100_000
const SINCE_COMMIT_MAX = 1_000

interface SharedRow {
  row: Row
  expiresAt: number
}

/** Reads rows by their ids, and all of them. */
export class RowReader {
  private readonly env: TableEnvironment
  private readonly clock: Clock
  private readonly scopes = new Map<string, number>()
  private readonly shared = new RowMemory()
  /** Shared rows read since the last known commit of this process, the only writer: a bulk repeats the question. */
  private readonly sinceCommit = new Map<string, SharedRow>()

  constructor(env: TableEnvironment, clock: Clock) {
    this.env = env
    this.clock = clock
  }

  /** A shared row is the same object as before, frozen, while its bytes are the same. */
  read<R extends Row>(record: TableRecord, scope: string, id: string, isShared = false): R | undefined {
    const number = this.scopeNumber(scope)
    if (number === undefined || !isRowId(id)) return undefined
    const name = isShared ? `${record.number} ${number} ${id}` : ''
    const known = isShared ? this.sinceCommit.get(name) : undefined
    if (known !== undefined) return this.hasEnded(known.expiresAt) ? undefined : (known.row as R)
    const stored = storedBytes(this.env.rows.getBinaryFast(rowKeyOf(record.number, number, id)))
    if (stored === undefined || this.hasEnded(stored.expiresAt)) return undefined
    if (!isShared) return unpack<R>(stored.packed)
    const unpacked = (): StoredRow => ({ scope, id, row: unpack<R>(stored.packed) })
    const { row } = this.shared.row(name, stored.packed, unpacked)
    if (this.sinceCommit.size >= SINCE_COMMIT_MAX) this.sinceCommit.clear()
    if (Object.isFrozen(row)) this.sinceCommit.set(name, { row, expiresAt: stored.expiresAt })
    return row as R
  }

  /** Called after a commit: rows are read again. */
  committed(): void {
    this.sinceCommit.clear()
  }

  /** The table is looked up again at each page, as it may have been replaced meanwhile. */
  async *scan<R extends Row>(recordOf: () => TableRecord): AsyncGenerator<StoredRow<R>> {
    let start: Buffer = Buffer.of(0)
    for (;;) {
      const names = [...this.env.scopes.getKeys({ start, limit: SCAN_ROWS_AT_ONCE })].map((key) =>
        bufferOf(key).toString('utf8'),
      )
      for (const name of names) yield* this.scanScope<R>(recordOf, name)
      const last = names.at(-1)
      if (last === undefined) return
      start = Buffer.concat([Buffer.from(last), Buffer.of(0)])
    }
  }

  async *scanScope<R extends Row>(recordOf: () => TableRecord, scope: string): AsyncGenerator<StoredRow<R>> {
    const number = this.scopeNumber(scope)
    if (number === undefined) return
    let after: Buffer | undefined
    for (;;) {
      const space = spaceKey(recordOf().number, number)
      const start: Buffer = Buffer.concat([
        space,
        after === undefined ? Buffer.alloc(0) : Buffer.concat([after, Buffer.of(0)]),
      ])
      const entries = [
        ...this.env.rows.getRange({ start, end: Buffer.concat([space, Buffer.of(255)]), limit: SCAN_ROWS_AT_ONCE }),
      ]
      for (const { key, value } of entries) {
        const stored = storedBytes(value)
        after = Buffer.from(key.subarray(8))
        if (stored !== undefined && !this.hasEnded(stored.expiresAt))
          yield { scope, id: after.toString('utf8'), row: unpack<R>(stored.packed) }
      }
      if (entries.length < SCAN_ROWS_AT_ONCE) return
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  scopeNumber(scope: string): number | undefined {
    const cached = this.scopes.get(scope)
    if (cached !== undefined) return cached
    const number = this.env.scopes.getBinary(Buffer.from(scope))?.readUInt32BE(0)
    if (number === undefined) return undefined
    if (this.scopes.size >= SCOPES_CACHED_MAX) this.scopes.clear()
    this.scopes.set(scope, number)
    return number
  }

  private hasEnded(expiresAt: number): boolean {
    return expiresAt > 0 && expiresAt <= this.clock.now()
  }
}
