import type { NumberRows, TableDeclaration } from '../../kernel/table.ts'
import { RowWriter } from './apply.ts'
import type { Job, JobResult, PackedChange } from './jobs.ts'
import { bufferOf, number4, pack, recordOf, type TableEnvironment, type TableRecord, time6, unpack } from './layout.ts'
import { NumberRowPacker } from './number-rows.ts'
import { hasSweep, markGarbage, sweepCounters, sweepExpired, sweepGarbage } from './sweep.ts'
import { NOTHING } from './terms.ts'
import { type Checkpoint, isSameCheckpoint, type Taken } from '../table-store.ts'

const NEXT_KEY = Buffer.from('next')
const FILLER_KEY = Buffer.from('filler')
const SCOPES_CACHED_MAX = 100_000

interface Next {
  table: number
  scope: number
  bytes: number
}

/** A misuse of the store, such as a table that was never declared: not a failure of the engine. */
export class Misuse extends Error {}

/** The writer: each job is a step of a transaction that its caller opened. */
export class TableWriter {
  private readonly env: TableEnvironment
  private readonly bytesMax: number
  private scopes = new Map<string, number>()
  private records = new Map<string, TableRecord>()
  private next: Next

  constructor(env: TableEnvironment, bytesMax: number) {
    this.env = env
    this.bytesMax = bytesMax
    this.next = this.readNext()
    this.load()
  }

  /** Runs the jobs in one transaction: all of them count, or none. */
  runAll(jobs: readonly { job: Job; now: number }[]): JobResult[] {
    try {
      return this.env.root.transactionSync(() => {
        const rows = new RowWriter(this.env, (name) => this.scopeNumber(name))
        const results = jobs.map(({ job, now }) => this.run(job, now, rows))
        this.finish(rows)
        return results
      })
    } catch (error) {
      this.load()
      throw error
    }
  }

  /** Deletes some expired rows and parts of tables no longer named; false when nothing is left to do. */
  sweep(now: number, mayClear: boolean): boolean {
    try {
      return this.env.root.transactionSync(() => {
        const rows = new RowWriter(this.env, (name) => this.scopeNumber(name))
        const more =
          sweepExpired(this.env, this.records.values(), now, rows) ||
          sweepCounters(this.env, now) ||
          (mayClear && sweepGarbage(this.env, rows))
        this.finish(rows)
        return more
      })
    } catch (error) {
      this.load()
      throw error
    }
  }

  /** Writes this many bytes and removes them; throws if they do not fit. A crash leaves them to the next try. */
  tryBytes(bytes: number): void {
    this.env.root.transactionSync(() => this.env.meta.putSync(FILLER_KEY, Buffer.alloc(bytes)))
    this.env.root.transactionSync(() => this.env.meta.removeSync(FILLER_KEY))
  }

  declared(): [string, TableRecord][] {
    return [...this.records]
  }

  hasSweep(now: number, mayClear: boolean): boolean {
    return hasSweep(this.env, now, mayClear)
  }

  private run(job: Job, now: number, rows: RowWriter): JobResult {
    if (job.kind === 'commit') return this.commit(job, rows)
    if (job.kind === 'take') return this.take(job.consumer)
    if (job.kind === 'putIfAbsent') return this.putIfAbsent(unpack<PackedChange>(job.part), now, rows)
    if (job.kind === 'increment') return this.increment(job.scope, job.id, job.windowMs, now)
    if (job.kind === 'declare') return this.declare(job.table)
    if (job.kind === 'promote') return this.promote(job.tables, job.consumer)
    if (job.kind === 'reset') return this.reset(job.tables, job.consumer)
    return undefined
  }

  private finish(rows: RowWriter): void {
    rows.flush()
    const bytes = Math.max(0, this.next.bytes + rows.bytesAdded)
    if (rows.bytesAdded > 0 && bytes > this.bytesMax)
      throw new Error(`The tables hold all of the ${this.bytesMax} bytes that they may.`)
    this.next.bytes = bytes
    this.env.meta.putSync(NEXT_KEY, pack(this.next))
  }

  private commit({ parts, move, numbers }: Job & { kind: 'commit' }, rows: RowWriter): JobResult {
    if (move !== undefined) {
      const stored = this.taken(move.consumer)
      if (move.fence < stored.fence) return { stale: stored }
      if (!isSameCheckpoint(move.from, stored.at))
        return move.at !== undefined && isSameCheckpoint(move.at, stored.at) ? undefined : { stale: stored }
      if (move.at !== undefined) this.env.meta.putSync(checkpointKey(move.consumer), pack(move.at))
      if (move.fence !== stored.fence) this.env.meta.putSync(fenceKey(move.consumer), pack(move.fence))
    }
    for (const part of parts) {
      for (const [table, scope, id, row, expiresAt] of unpack<PackedChange[]>(part))
        rows.write(this.record(table), scope, id, row, expiresAt)
    }
    if (numbers !== undefined) this.writeNumbers(numbers, rows)
    return undefined
  }

  private writeNumbers(numbers: NumberRows, rows: RowWriter): void {
    const record = this.record(numbers.table)
    const packer = new NumberRowPacker(numbers)
    for (const [i, id] of numbers.ids.entries()) rows.write(record, numbers.scopes[i], id, packer.pack(i), 0)
  }

  private take(consumer: string): JobResult {
    const { at, fence } = this.taken(consumer)
    this.env.meta.putSync(fenceKey(consumer), pack(fence + 1))
    return { taken: { at, fence: fence + 1 } }
  }

  private taken(consumer: string): Taken {
    const [at, fence] = [checkpointKey(consumer), fenceKey(consumer)].map((key) => this.env.meta.getBinary(key))
    return {
      at: at === undefined ? undefined : unpack<Checkpoint>(at),
      fence: fence === undefined ? 0 : unpack<number>(fence),
    }
  }

  private putIfAbsent([table, scope, id, row, expiresAt]: PackedChange, now: number, rows: RowWriter): JobResult {
    const record = this.record(table)
    const old = rows.read(record, scope, id)
    if (old !== undefined && (old.expiresAt === 0 || old.expiresAt > now)) return { row: Uint8Array.from(old.packed) }
    rows.write(record, scope, id, row, expiresAt)
    return { row: undefined }
  }

  private increment(scope: string, id: string, windowMs: number, now: number): JobResult {
    const key = Buffer.concat([number4(this.scopeNumber(scope)), Buffer.from(id)])
    const value = this.env.counters.getBinary(key)
    const endedAt = value?.readDoubleBE(8)
    const counts = value !== undefined && endedAt !== undefined && endedAt > now
    const count = counts ? value.readDoubleBE(0) + 1 : 1
    const expiresAt = counts ? endedAt : Math.floor(now + windowMs)
    const bytes = Buffer.allocUnsafe(16)
    bytes.writeDoubleBE(count, 0)
    bytes.writeDoubleBE(expiresAt, 8)
    this.env.counters.putSync(key, bytes)
    if (!counts) {
      if (endedAt !== undefined) this.env.expiry.removeSync(Buffer.concat([Buffer.of(2), time6(endedAt), key]))
      this.env.expiry.putSync(Buffer.concat([Buffer.of(2), time6(expiresAt), key]), NOTHING)
    }
    return { count, expiresAt }
  }

  private declare(table: TableDeclaration): JobResult {
    const known = this.records.get(table.name)
    if (known?.version === table.version) {
      const wanted = recordOf(table, known.number)
      if (JSON.stringify(wanted) !== JSON.stringify(known)) {
        throw new Misuse(
          `Table ${table.name} was declared with other indexes under version ${table.version}: raise the version.`,
        )
      }
      return { records: [[table.name, known]] }
    }
    if (known !== undefined) this.discard(known)
    return { records: [this.name(table.name, recordOf(table, this.newTable()))] }
  }

  private promote(tables: readonly string[], consumer: string): JobResult {
    const records: [string, TableRecord][] = []
    for (const name of tables) {
      const built = this.record(`${name}@next`)
      const live = this.records.get(name)
      if (live !== undefined) this.discard(live)
      records.push(this.name(name, built))
      this.records.delete(`${name}@next`)
      this.env.registry.removeSync(Buffer.from(`${name}@next`))
    }
    const at = this.env.meta.getBinary(checkpointKey(`${consumer}@next`))
    if (at === undefined) this.env.meta.removeSync(checkpointKey(consumer))
    else this.env.meta.putSync(checkpointKey(consumer), Buffer.from(at))
    this.env.meta.removeSync(checkpointKey(`${consumer}@next`))
    return { records }
  }

  private reset(tables: readonly string[], consumer: string): JobResult {
    const records = tables.map((name) => {
      const record = this.record(name)
      this.discard(record)
      return this.name(name, { ...record, number: this.newTable() })
    })
    this.env.meta.removeSync(checkpointKey(consumer))
    return { records }
  }

  private name(name: string, record: TableRecord): [string, TableRecord] {
    this.records.set(name, record)
    this.env.registry.putSync(Buffer.from(name), pack(record))
    return [name, record]
  }

  private newTable(): number {
    const number = this.next.table
    this.next.table += 1
    return number
  }

  private discard(record: TableRecord): void {
    markGarbage(this.env, record.number)
  }

  private record(name: string): TableRecord {
    const record = this.records.get(name)
    if (record === undefined) throw new Misuse(`Table ${name} was not declared.`)
    return record
  }

  private scopeNumber(name: string): number {
    const cached = this.scopes.get(name)
    if (cached !== undefined) return cached
    const key = Buffer.from(name)
    let number = this.env.scopes.getBinary(key)?.readUInt32BE(0)
    if (number === undefined) {
      number = this.next.scope
      this.next.scope += 1
      this.env.scopes.putSync(key, number4(number))
    }
    if (this.scopes.size >= SCOPES_CACHED_MAX) this.scopes.clear()
    this.scopes.set(name, number)
    return number
  }

  private readNext(): Next {
    const value = this.env.meta.getBinary(NEXT_KEY)
    return value === undefined ? { table: 1, scope: 1, bytes: 0 } : unpack<Next>(value)
  }

  // After a failed transaction, the state in memory may never have been stored.
  private load(): void {
    this.env.root.resetReadTxn()
    this.next = this.readNext()
    this.scopes = new Map()
    this.records = new Map()
    for (const { key, value } of this.env.registry.getRange({}))
      this.records.set(bufferOf(key).toString('utf8'), unpack<TableRecord>(value))
  }
}

export const checkpointKey = (consumer: string): Buffer => Buffer.from(`checkpoint:${consumer}`)

const fenceKey = (consumer: string): Buffer => Buffer.from(`fence:${consumer}`)
