import { RecentMap } from '../../kernel/recent-map.ts'
import { freezePage, isForOneCaller, PAGES_BYTES, pageKey, pageWeight, questionKey, RowMemory } from '../page-memory.ts'
import type { Find, Found, StoredRow } from '../table-store.ts'
import { answeredWhenFree } from './busy.ts'
import { changesOf, dependencies } from './changes.ts'
import { type Answer, findRows, type Known, type Match, pageOf } from './find.ts'
import { Joint } from './joint.ts'
import { ENDED, placeKeys, TableEnded, tableKeys } from './places.ts'
import { READ_ROWS } from './reads.ts'
import { unpackRow } from './terms.ts'
import { concerns, ToldChanges } from './told-changes.ts'
import type { TableAt } from './walk.ts'

/** With the last changes of its table and place, as Redis reports them, as of which it is known to hold. */
interface Page extends Omit<Answer, 'matches' | 'packed'> {
  rowBytes: number
}

/** With the last changes as of which they are known to hold. */
interface Matches {
  matches: readonly Match[]
  changes: string
}

type Total = NonNullable<Known['total']>

/** Names of a question in its place; undefined for one that is not remembered. */
interface Names {
  question: string | undefined
  page: string | undefined
  /** The page that ends where this one begins. */
  before: string | undefined
}

const TOTALS_BYTES = 2 * 1024 * 1024
const MATCHES_BYTES = 8 * 1024 * 1024
const MATCH_BYTES = 250
/** More are found again for each page. */
const MATCHES_MAX = 1_500
/** Minimum of tables and places whose last changes are remembered. */
const TOLD_PLACES = 100

/**
 * Answers pages, and remembers them with the last changes that they depend on (changes.ts). One call, shared by
 * simultaneous callers, tells whether pages of a table and place still hold, whichever process wrote there. Rows that
 * have changed, but neither come nor gone nor moved, are read by id.
 */
export class KnownPages {
  private readonly confirm: (key: string) => Promise<void>
  private readonly pages = new RecentMap<string, Page>(PAGES_BYTES, ({ rowBytes }, key) => pageWeight(rowBytes, key))
  /** Totals by question, for all of its pages. */
  private readonly totals = new RecentMap<string, Total>(
    TOTALS_BYTES,
    ({ changes }, key) => 300 + key.length + changes.length,
  )
  /** Matches by question, for questions that few rows match. */
  private readonly matches = new RecentMap<string, Matches>(
    MATCHES_BYTES,
    ({ matches }, key) => 300 + key.length + MATCH_BYTES * matches.length,
  )
  private readonly told = new RecentMap<string, ToldChanges>(TOLD_PLACES)
  private readonly rows = new RowMemory()
  private readonly answers = new Joint<Found>()
  private readonly lastChanges = new Joint<string>()

  /** `confirm` rejects where the server of a key may have lost its data. */
  constructor(confirm: (key: string) => Promise<void>) {
    this.confirm = confirm
  }

  /** @throws Failure engine_down, overloaded */
  async find(place: TableAt, question: Find): Promise<Found> {
    const names = namesOf(place, question)
    const { page } = names
    if (page === undefined) return (await this.pageNow(undefined, place, question, names)).found
    return this.answers.ask(page, () => this.answer(page, place, question, names))
  }

  private async answer(name: string, place: TableAt, question: Find, names: Names): Promise<Found> {
    const kept = this.pages.get(name)
    const page = await this.pageNow(kept, place, question, names)
    // Where nothing was ever changed, nothing would reveal a server that lost its rows.
    if (page !== kept && freezePage(page.found) && page.changes !== '') this.pages.set(name, page)
    return page.found
  }

  private async pageNow(kept: Page | undefined, place: TableAt, question: Find, names: Names): Promise<Page> {
    const held = kept && (await this.asItIs(kept, place, question))
    return held ?? (await this.ofMatches(place, question, names)) ?? this.anew(place, question, names, kept)
  }

  /** The page in its present state; undefined where it must be made again. */
  private async asItIs(kept: Page, place: TableAt, question: Find): Promise<Page | undefined> {
    const { found } = kept
    const now = await this.unmoved(kept.changes, place, question)
    if (now === undefined || now.changes === kept.changes) return now && kept
    const ids = found.rows.map(({ id }) => id)
    if (ids.every((id) => !now.isTouched(id))) return { ...kept, changes: now.changes }
    const read = await this.rowsOf(ids, place, question, now.changes)
    if (read === undefined) return undefined
    const { rows, ...rest } = read
    return { ...kept, ...rest, found: rows.every((row, i) => row === found.rows[i]) ? found : { ...found, rows } }
  }

  /** The page made of the known matches; undefined where they are not known. */
  private async ofMatches(place: TableAt, question: Find, names: Names): Promise<Page | undefined> {
    const kept = names.question === undefined ? undefined : this.matches.get(names.question)
    if (kept === undefined || question.limit > READ_ROWS) return undefined
    const now = await this.unmoved(kept.changes, place, question)
    if (now === undefined) return undefined
    this.matches.set(names.question!, { ...kept, changes: now.changes })
    const { ids, ...page } = pageOf(kept.matches, question)
    if (ids.length === 0) return { found: { rows: [], ...page }, changes: now.changes, rowBytes: 0 }
    const read = await this.rowsOf(ids, place, question, now.changes)
    return read && { found: { rows: read.rows, ...page }, changes: read.changes, rowBytes: read.rowBytes }
  }

  /**
   * The last changes now, and the rows that they touched, if since some last changes nothing has changed the rows that
   * a question finds, or their order.
   */
  private async unmoved(
    changes: string,
    place: TableAt,
    question: Find,
  ): Promise<{ changes: string; isTouched(id: string): boolean } | undefined> {
    const since = lastOf(changes)
    const now = await this.changesIn(place, since)
    if (now === '') return undefined
    if (now === changes) return { changes, isTouched: () => false }
    const names = dependencies(question)
    const told = this.told.get(nameOf(place, ''))?.since(since)
    if (changesOf(now, names) !== changesOf(changes, names) && (told?.some(concerns(question)) ?? true))
      return undefined
    const touched = told && new Set(told.map(({ id }) => id))
    return { changes: now, isTouched: (id) => touched?.has(id) ?? lastOf(now) !== since }
  }

  /** Rows of a page; undefined where they, or their index entries, have changed since those last changes. */
  private async rowsOf(
    ids: readonly string[],
    place: TableAt,
    question: Find,
    since: string,
  ): Promise<{ rows: StoredRow[]; changes: string; rowBytes: number } | undefined> {
    const keys = [...placeKeys(place.key), ...tableKeys(place.key, place.table).slice(0, 5)]
    const [bytes, changes] = (await answeredWhenFree((how) =>
      place.connection.fcall('page', keys, [place.table.generation, how, ...ids]),
    )) as [(Buffer | null)[], Buffer]
    const names = dependencies(question)
    if (changesOf(String(changes), names) !== changesOf(since, names)) return undefined
    const rows: StoredRow[] = []
    let rowBytes = 0
    for (const [i, packed] of bytes.entries()) {
      if (packed === null) return undefined
      rows.push(
        this.shared(place, question, ids[i], packed, () => ({
          scope: place.scope,
          id: ids[i],
          row: unpackRow(packed),
        })),
      )
      rowBytes += packed.length
    }
    return { rows, changes: String(changes), rowBytes }
  }

  private async anew(place: TableAt, question: Find, names: Names, kept?: Page): Promise<Page> {
    const before = names.before === undefined ? undefined : this.pages.get(names.before)
    const known: Known = {
      total: names.question === undefined ? undefined : this.totals.get(names.question),
      before: before && { next: before.found.next, changes: before.changes },
      first: kept?.first,
    }
    const { matches, packed, ...answer } = await findRows(place, question, known)
    await this.confirm(place.key)
    const { found, changes } = answer
    if (names.question !== undefined && found.total !== undefined && changes !== '')
      this.totals.set(names.question, { total: found.total, changes })
    if (names.question !== undefined && matches !== undefined && matches.length <= MATCHES_MAX && changes !== '')
      this.matches.set(names.question, { matches, changes })
    let rowBytes = 0
    const rows = found.rows.map((row) => {
      const bytes = packed.get(row)!
      rowBytes += bytes.length
      return this.shared(place, question, row.id, bytes, () => row)
    })
    return { ...answer, found: { ...found, rows }, rowBytes }
  }

  /** A row of a page: the same object as on other pages. */
  private shared(place: TableAt, question: Find, id: string, bytes: Buffer, unpacked: () => StoredRow): StoredRow {
    return isForOneCaller(question) ? unpacked() : this.rows.row(nameOf(place, id), bytes, unpacked)
  }

  /**
   * The last change of everything; learns the effects of changes since the last known ones, or since that one.
   * @throws TableEnded
   */
  private changesIn(place: TableAt, since: string): Promise<string> {
    const { connection, key, table } = place
    const name = nameOf(place, '')
    const keys = [key, ...tableKeys(key, table).slice(0, 6)]
    return this.lastChanges.ask(name, async () => {
      const known = this.told.get(name) ?? new ToldChanges(since)
      const answer = (await connection.fcall('changes', keys, [table.generation, known.last])) as [Buffer, Buffer[]?]
      const changes = String(answer[0])
      // A page without rows reads none, which would report it.
      if (lastOf(changes) === ENDED) throw new TableEnded()
      const [, told] = answer
      known.add(told ?? [])
      this.told.set(name, told === undefined ? new ToldChanges(lastOf(changes)) : known)
      return changes
    })
  }
}

/** The last change of any row. */
const lastOf = (changes: string): string => changesOf(changes, ['rows'])

const nameOf = ({ key, table }: TableAt, what: string): string => `${key} ${table.generation} ${what}`

const namesOf = (place: TableAt, question: Find): Names => {
  const asked = questionKey(question)
  const name = (what: string | undefined): string | undefined => (what === undefined ? undefined : nameOf(place, what))
  const { offset = 0, limit } = question
  return {
    question: name(asked),
    page: name(pageKey(question, asked)),
    before: offset < limit ? undefined : name(pageKey({ ...question, offset: offset - limit }, asked)),
  }
}
