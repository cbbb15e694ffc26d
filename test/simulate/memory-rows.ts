import {
  type Checkpoint,
  type CheckpointMove,
  type Conditions,
  type Counted,
  type Find,
  type Found,
  type Grouping,
  isRowId,
  isSameCheckpoint,
  StaleCommit,
  stretchFrom,
  type StoredRow,
  type Taken,
  type Term,
} from '../../src/engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../src/kernel/table.ts'
import { answered, isBehind, type NamedRow } from './memory-find.ts'
import { down } from './wire.ts'

interface Stored {
  row: Row
  expiresAt: number | undefined
}

interface Table {
  declaration: TableDeclaration
  scopes: Map<string, Map<string, Stored>>
}

interface Consumer {
  at: Checkpoint | undefined
  fence: number
}

/** A move of a checkpoint, with the number of its commit among those of its owner. */
export interface Commit extends CheckpointMove {
  turn: number
}

/** How long it is known what was there before a change. */
const KNOWN_MS = 5_000

/**
 * Tables in memory, as one server that does one thing at a time. Rows of one place change together; a commit of several
 * places is several calls (`memory-tables.ts`).
 */
export class MemoryRows {
  /** How often something was lost. */
  losses = 0
  private readonly now: () => number
  private readonly tables = new Map<string, Table>()
  private readonly consumers = new Map<string, Consumer>()
  /** By place and consumer, the latest commit that stored rows there. */
  private readonly latest = new Map<string, Commit>()
  private readonly counters = new Map<string, { count: number; expiresAt: number }>()
  private lastFence = 0
  private undos: { atMs: number; undo(): void }[] = []
  private readonly hearers = new Set<(text: string) => void>()

  constructor(now: () => number) {
    this.now = now
  }

  tell(text: string): void {
    for (const hear of this.hearers) hear(text)
  }

  /** Answers what ends it. */
  hear(listener: (text: string) => void): () => void {
    this.hearers.add(listener)
    return () => this.hearers.delete(listener)
  }

  declare(declaration: TableDeclaration): void {
    const known = this.tables.get(declaration.name)
    if (known?.declaration.version === declaration.version) return
    this.tables.set(declaration.name, { declaration, scopes: new Map() })
  }

  declarationOf(name: string): TableDeclaration {
    return this.table(name).declaration
  }

  get(table: string, scope: string, id: string): Row | undefined {
    return copied(this.living(this.table(table).scopes.get(scope)?.get(id))?.row)
  }

  find<R extends Row>(name: string, scope: string, question: Find): Found<R> {
    const { declaration } = this.searched(name)
    const { limit, offset = 0, after, total } = question
    const all = answered(this.rowsOf(name, scope), question, declaration)
    const from = after === undefined ? undefined : (JSON.parse(after) as NamedRow)
    const rest = (from === undefined ? all : all.filter((row) => isBehind(row, from, question))).slice(offset)
    const rows = rest.slice(0, limit).map(({ id, row }) => ({ scope, id, row: copied(row) as R }))
    const last = rows.at(-1)
    const next = rest.length > limit && last !== undefined ? cursorOf(last, question) : null
    return { rows, next, ...(total === true && { total: all.length }) }
  }

  countBy(name: string, scope: string, questions: readonly Conditions[], { field, stepOf }: Grouping): Counted[] {
    const { declaration } = this.searched(name)
    const groups = new Map<string, Counted>()
    for (const [i, question] of questions.entries())
      for (const { row } of answered(this.rowsOf(name, scope), question, declaration))
        for (const value of new Set([row[field] ?? []].flat() as Term[])) {
          const key = stepOf === undefined ? JSON.stringify(value) : stretchFrom(stepOf, String(value)).last
          const group = groups.get(key) ?? { value, counts: questions.map(() => 0) }
          group.counts[i]++
          if (value < group.value) group.value = value
          groups.set(key, group)
        }
    return [...groups.values()]
  }

  scan(name: string, scope: string): StoredRow[] {
    const { declaration } = this.searched(name)
    return answered(this.rowsOf(name, scope), {}, declaration).map(({ id, row }) => ({ scope, id, row: copied(row) }))
  }

  scanAll(name: string): StoredRow[] {
    return [...this.table(name).scopes.keys()].flatMap((scope) =>
      this.rowsOf(name, scope).map(({ id, row }) => ({ scope, id, row: copied(row) as Row })),
    )
  }

  /** Whether the move was made before. @throws StaleCommit */
  isDone({ consumer, from, at, fence }: CheckpointMove): boolean {
    const stored = this.consumers.get(consumer) ?? { at: undefined, fence: 0 }
    if (stored.fence === fence) {
      if (isSameCheckpoint(stored.at, from)) return false
      if (at !== undefined && isSameCheckpoint(stored.at, at)) return true
    }
    throw new StaleCommit(consumer, { at: stored.at, fence: stored.fence })
  }

  /**
   * Stores rows of one place that is not the consumer's own.
   * @throws StaleCommit if a later owner has stored there, engine_down if a later commit of the same owner has
   */
  storePlace(place: string, changes: readonly RowChange[], commit?: Commit): void {
    if (commit !== undefined) {
      const key = `${place} ${commit.consumer}`
      const { fence, turn } = this.latest.get(key) ?? { fence: 0, turn: 0 }
      if (fence > commit.fence) throw new StaleCommit(commit.consumer, { at: undefined, fence })
      if (fence === commit.fence && turn > commit.turn) throw down()
      this.latest.set(key, commit)
    }
    for (const change of changes) this.store(change)
  }

  /** Stores the rows that live with the consumer and moves its checkpoint. @throws StaleCommit, and as `storePlace` */
  storeMove(changes: readonly RowChange[], commit: Commit): void {
    if (this.isDone(commit)) return
    this.storePlace('', changes, commit)
    if (commit.at !== undefined) this.moveTo(commit.consumer, commit.at)
  }

  take(consumer: string): Taken {
    const fence = ++this.lastFence
    const at = this.consumers.get(consumer)?.at
    this.consumers.set(consumer, { at, fence })
    return { at, fence }
  }

  checkpoint(consumer: string): Checkpoint | undefined {
    return this.consumers.get(consumer)?.at
  }

  putIfAbsent(change: RowChange): Row | undefined {
    const known = this.get(change.table, change.scope, change.id)
    if (known === undefined) this.store(change)
    return known
  }

  increment(scope: string, id: string, windowMs: number): { count: number; expiresAt: number } {
    const key = JSON.stringify([scope, id])
    const known = this.counters.get(key)
    const isOver = known === undefined || known.expiresAt <= this.now()
    const next = isOver ? { count: 1, expiresAt: this.now() + windowMs } : { ...known, count: known.count + 1 }
    this.counters.set(key, next)
    return next
  }

  promote(names: readonly string[], consumer: string): void {
    for (const name of names) {
      const built = this.table(`${name}@next`)
      this.tables.set(name, { ...built, declaration: { ...built.declaration, name } })
      this.tables.delete(`${name}@next`)
    }
    this.moveTo(consumer, this.checkpoint(`${consumer}@next`))
    this.moveTo(`${consumer}@next`, undefined)
    this.undos = []
  }

  reset(names: readonly string[], consumer: string): void {
    for (const name of names) this.table(name).scopes = new Map()
    this.moveTo(consumer, undefined)
    this.undos = []
  }

  /** Loses what was stored in the last moments, rows and checkpoints together; fences go on rising. */
  loseSince(atMs: number): void {
    this.losses++
    for (let last = this.undos.at(-1); last !== undefined && last.atMs >= atMs; last = this.undos.at(-1)) {
      last.undo()
      this.undos.pop()
    }
  }

  private table(name: string): Table {
    const table = this.tables.get(name)
    if (table === undefined) throw new Error(`the table ${name} is not declared`)
    return table
  }

  private searched(name: string): Table {
    const table = this.table(name)
    if (table.declaration.lives === 'row') throw new Error(`${name} is only asked for by id`)
    return table
  }

  private rowsOf(name: string, scope: string): NamedRow[] {
    return [...(this.table(name).scopes.get(scope) ?? [])].flatMap(([id, stored]) =>
      this.living(stored) === undefined ? [] : [{ id, row: stored.row }],
    )
  }

  private living(stored: Stored | undefined): Stored | undefined {
    return stored?.expiresAt !== undefined && stored.expiresAt <= this.now() ? undefined : stored
  }

  private store({ table, scope, id, row, expiresAt }: RowChange): void {
    if (!isRowId(id)) throw new Error(`no id of a row: ${id}`)
    const { scopes } = this.table(table)
    const rows = scopes.get(scope) ?? new Map<string, Stored>()
    scopes.set(scope, rows)
    const before = rows.get(id)
    this.mayLose(() => (before === undefined ? rows.delete(id) : rows.set(id, before)))
    if (row === null) rows.delete(id)
    else rows.set(id, { row: copied(row) as Row, expiresAt })
  }

  private moveTo(consumer: string, at: Checkpoint | undefined): void {
    const known = this.consumers.get(consumer) ?? { at: undefined, fence: 0 }
    const before = known.at
    this.consumers.set(consumer, { ...known, at })
    this.mayLose(() => this.consumers.set(consumer, { fence: this.consumers.get(consumer)?.fence ?? 0, at: before }))
  }

  private mayLose(undo: () => unknown): void {
    const atMs = this.now()
    this.undos.push({ atMs, undo })
    if (this.undos.length > 1_000 && this.undos[0].atMs < atMs - KNOWN_MS)
      this.undos = this.undos.filter((entry) => entry.atMs >= atMs - KNOWN_MS)
  }
}

const cursorOf = ({ id, row }: NamedRow, { sort }: Find): string =>
  JSON.stringify({ id, row: sort === undefined ? {} : { [sort.field]: row[sort.field] } })

const copied = <Value>(value: Value): Value => {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return new Uint8Array(value) as Value
  if (Array.isArray(value)) return value.map(copied) as Value
  const copy: { [field: string]: unknown } = {}
  for (const [field, member] of Object.entries(value)) if (member !== undefined) copy[field] = copied(member)
  return copy as Value
}
