import type { Transaction } from 'lmdb'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import { freezePage, isForOneCaller, PAGES_BYTES, pageKey, pageWeight, questionKey, RowMemory } from '../page-memory.ts'
import { type Find, type Found, rangesOf, type StoredRow } from '../table-store.ts'
import { chunkOf, type RowSet } from './bits.ts'
import {
  changedRows,
  countIn,
  equalitySlot,
  MEMBERS_SLOT,
  rangeSlot,
  readBinary,
  ROWS_SLOT,
  TEXT_SLOT,
} from './changes.ts'
import { DocReader } from './docs.ts'
import { fitting } from './fits.ts'
import { bufferOf, idBytes, ROW_HEADER_BYTES, rowKey, spaceKey, type TableRecord, unpack } from './layout.ts'
import { inOrderWith, type Match } from './order.ts'
import { MemberReader } from './packed-values.ts'
import type { FindSource } from './sets.ts'
import { sortable, storedBytes } from './terms.ts'

/*
 * Recent answers, and the parts that answers are made of. Nothing here needs to be notified of changes: a page and the
 * matches of a filter stand beside the counts of changes (changes.ts) of the indexes that they were read from, a row
 * beside the bytes that it was unpacked from, and a snapshot in which those differ makes them again. Few matches are
 * brought up to date by looking at the rows that changed since.
 */

/** More matches are kept as a set. */
export const SORTED_IN_MEMORY_MAX = 1_500
/** In rows found from scratch: the cost of looking at a changed row, and of reading a chunk of a filter's sets. */
const LOOK_COST = 3
const CHUNK_COST = 3
const MATCHES_BYTES = 16 * 1024 * 1024

/** Matching rows: few in order, or many as a set; neither where every row within the bounds of the order matches. */
export interface Matches {
  sorted?: readonly Match[]
  set?: RowSet
  /** Number of matches, once it was requested. */
  total?: number
}

interface NamedMatches extends Matches {
  /** Tells pages the matches they are made of, without holding them. */
  name: object
}

interface Kept<Value> {
  /** Counts of changes of the indexes that it was read from. */
  at: string
  /** Count of changes of rows. */
  rowsAt: number
  value: Value
}

type Page = Kept<Found> & { of: object; bytes: number }

const matchesBytes = ({ value }: Kept<NamedMatches>, key: string): number =>
  300 + key.length + (value.set?.bytes ?? 0) + 150 * (value.sorted?.length ?? 0)

interface KeptAll {
  allMatches: RecentMap<string, Kept<NamedMatches>>
  allPages: RecentMap<string, Page>
  allRows: RowMemory
}

export class KnownAnswers {
  private readonly kept: KeptAll = {
    allMatches: new RecentMap(MATCHES_BYTES, matchesBytes),
    allPages: new RecentMap(PAGES_BYTES, ({ bytes }, key) => pageWeight(bytes, key)),
    allRows: new RowMemory(),
  }

  /** For one question, on one snapshot. Answers that time alone may change are not remembered. */
  about(source: FindSource, question: Find, isLasting: boolean): KnownAnswer {
    return new KnownAnswer({ source, question, isLasting, ...this.kept })
  }
}

export class KnownAnswer {
  private readonly source: FindSource
  private readonly question: Find
  private readonly kept: KeptAll
  private readonly options: { transaction: Transaction }
  private readonly space: Buffer
  private readonly at: string
  private readonly rowsAt: number
  /** Undefined for a question that is not remembered. */
  private readonly key: string | undefined
  private rowBytes = 0
  private reader: MemberReader | undefined

  constructor({
    source,
    question,
    isLasting,
    ...kept
  }: KeptAll & { source: FindSource; question: Find; isLasting: boolean }) {
    this.source = source
    this.question = question
    this.kept = kept
    this.options = { transaction: source.transaction }
    const { env, record, scopeNumber } = source
    this.space = spaceKey(record.number, scopeNumber)
    const key = isLasting ? questionKey(question) : undefined
    this.key = key === undefined ? undefined : `${record.number} ${scopeNumber} ${key}`
    const counts = key === undefined ? undefined : readBinary(env.changes, this.space, this.options)
    this.rowsAt = countIn(counts, ROWS_SLOT)
    this.at = slotsOf(record, question)
      .map((slot) => countIn(counts, slot))
      .join()
  }

  get matches(): NamedMatches | undefined {
    const kept = this.key === undefined ? undefined : this.kept.allMatches.get(this.key)
    if (kept === undefined) return undefined
    if (kept.at !== this.at) {
      const value = this.caughtUp(kept)
      return value === undefined ? undefined : this.keepMatches(value)
    }
    kept.rowsAt = Math.max(kept.rowsAt, this.rowsAt)
    return kept.value
  }

  keepMatches(found: Matches): NamedMatches {
    const value = found as NamedMatches
    value.name ??= {}
    if (this.key !== undefined) this.kept.allMatches.set(this.key, { at: this.at, rowsAt: this.rowsAt, value })
    return value
  }

  get page(): Found | undefined {
    const key = pageKey(this.question, this.key)
    const page = key === undefined ? undefined : this.kept.allPages.get(key)
    if (page === undefined || (page.at !== this.at && page.of !== this.matches?.name)) return undefined
    const { rows } = page.value
    if (page.rowsAt === this.rowsAt) return page.value
    const fresh = this.rows(rows.map(({ id }) => id))
    const isSame = fresh.length === rows.length && fresh.every((row, i) => row === rows[i])
    return this.keepPage(isSame ? page.value : { ...page.value, rows: fresh }, page.of)
  }

  keepPage(found: Found, of: object): Found {
    const key = pageKey(this.question, this.key)
    if (key === undefined || !freezePage(found)) return found
    const { at, rowsAt } = this
    this.kept.allPages.set(key, { at, rowsAt, value: found, of, bytes: this.rowBytes })
    return found
  }

  /** Few matches, updated by the rows that changed since then; the same object where nothing changes. */
  private caughtUp({ rowsAt, value }: Kept<NamedMatches>): Matches | undefined {
    const { source, question, space, options } = this
    if (value.sorted === undefined) return undefined
    const changed = changedRows(source.env, options, space, [rowsAt, this.rowsAt])
    if (changed === undefined) return undefined
    const anewCost = value.sorted.length + CHUNK_COST * (chunkOf(Math.max(...changed)) + 1)
    if (changed.size * LOOK_COST > anewCost) return undefined
    const fits = fitting(source.record, question)
    const docs = new DocReader(source.env, options.transaction, space)
    const now = [...changed].flatMap((no): Match[] => {
      const id = docs.read(no, [0])?.[0] as string | undefined
      const row = id === undefined ? undefined : this.row(id)?.row
      if (id === undefined || row === undefined || !fits(row)) return []
      return [{ no, id, value: question.sort === undefined ? null : sortable(row[question.sort.field]) }]
    })
    const before = new Map(value.sorted.filter(({ no }) => changed.has(no)).map((match) => [match.no, match]))
    if (now.length === before.size && now.every((match) => before.get(match.no)?.value === match.value)) return value
    const others = value.sorted.filter(({ no }) => !changed.has(no))
    if (others.length + now.length > SORTED_IN_MEMORY_MAX) return undefined
    return { sorted: inOrderWith(others, now, question.sort?.order === 'desc') }
  }

  /** Rows by their ids; on a page, unchanged ones are the same objects as before, frozen. */
  rows(ids: readonly string[]): StoredRow[] {
    return ids.flatMap((id) => this.row(id) ?? [])
  }

  /** The row of these bytes, as the question asks for it. */
  unpacked(bytes: Buffer, length: number): Row {
    const { members } = this.question
    if (members === undefined) return unpack<Row>(bufferOf(bytes).subarray(ROW_HEADER_BYTES, length))
    this.reader ??= new MemberReader(members)
    return this.reader.read<Row>(bytes, ROW_HEADER_BYTES, length)
  }

  private row(id: string): StoredRow | undefined {
    const { env, scope } = this.source
    const bytes = readBinary(env.rows, rowKey(this.space, idBytes(id)), this.options)
    const stored = storedBytes(bytes)
    if (bytes === undefined || stored === undefined) return undefined
    this.rowBytes += bytes.length
    if (isForOneCaller(this.question)) return { scope, id, row: this.unpacked(bytes, bytes.length) }
    const name = `${this.space.readUInt32BE(0)} ${this.space.readUInt32BE(4)} ${id}`
    return this.kept.allRows.row(name, bytes, () => ({ scope, id, row: unpack<Row>(stored.packed) }))
  }
}

/** Slots of everything that an answer depends on, but its rows. */
const slotsOf = (record: TableRecord, question: Find): number[] => {
  const { where = {}, every = {}, text, words, sort } = question
  const slots = [MEMBERS_SLOT]
  for (const field of Object.keys(where)) slots.push(equalitySlot(record, field))
  for (const field of Object.keys(every)) slots.push(equalitySlot(record, field))
  for (const { field } of rangesOf(question)) slots.push(rangeSlot(record, field))
  if (text !== undefined || words !== undefined) slots.push(TEXT_SLOT)
  if (sort !== undefined) slots.push(rangeSlot(record, sort.field))
  return slots
}
