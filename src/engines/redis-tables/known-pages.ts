import { RecentMap } from '../../kernel/recent-map.ts'
import { freezePage, PAGE_ROWS_MAX, PAGES_BYTES, pageKey, pageWeight, questionKey, RowMemory } from '../page-memory.ts'
import type { Find, Found, StoredRow } from '../table-store.ts'
import { answeredWhenFree } from './busy.ts'
import { changesOf, dependencies } from './changes.ts'
import { type Answer, findRows, type Known } from './find.ts'
import { Joint } from './joint.ts'
import { placeKeys, tableKeys } from './places.ts'
import { unpackRow } from './terms.ts'
import { concerns, ToldChanges } from './told-changes.ts'
import type { Place } from './walk.ts'

/** With the last changes of its table and place for which it is known to hold, as Redis tells them. */
interface Page extends Answer {
  rowBytes: number
}

type Total = NonNullable<Known['total']>

/** Where a question is answered. */
type Asked = Omit<Place, 'stored'>

/** Names of a question in its place; undefined for what is not remembered. */
interface Names {
  question: string | undefined
  page: string | undefined
  /** The page that ends where this one begins. */
  before: string | undefined
}

const TOTALS_BYTES = 2 * 1024 * 1024
/** Tables and places of which the last changes are remembered, at least. */
const TOLD_PLACES = 100

/**
 * Answers pages, and remembers them with the last changes of what they follow from (changes.ts). One call, shared by all
 * who ask at the same time, tells of a table and place whether pages still hold, whoever wrote there. Rows that have
 * changed, but neither come nor gone nor moved, are read by their ids.
 */
export class KnownPages {
  private readonly confirm: (key: string) => Promise<void>
  private readonly pages = new RecentMap<string, Page>(PAGES_BYTES, ({ rowBytes }, key) => pageWeight(rowBytes, key))
  /** Of questions, whichever of their pages was asked for. */
  private readonly totals = new RecentMap<string, Total>(
    TOTALS_BYTES,
    ({ changes }, key) => 300 + key.length + changes.length,
  )
  private readonly told = new RecentMap<string, ToldChanges>(TOLD_PLACES)
  private readonly rows = new RowMemory()
  private readonly answers = new Joint<Found>()
  private readonly lastChanges = new Joint<string>()

  /** `confirm` rejects where the server of a key may have lost what it had. */
  constructor(confirm: (key: string) => Promise<void>) {
    this.confirm = confirm
  }

  /** @throws Failure engine_down, overloaded */
  async find(place: Asked, question: Find): Promise<Found> {
    const names = namesOf(place, question)
    const { page } = names
    if (page === undefined) return (await this.anew(place, question, names)).found
    return this.answers.ask(page, () => this.answer(page, place, question, names))
  }

  private async answer(name: string, place: Asked, question: Find, names: Names): Promise<Found> {
    const kept = this.pages.get(name)
    const held = kept && (await this.asItIs(kept, place, question))
    const page = held ?? (await this.anew(place, question, names, kept))
    // Where nothing was ever changed, nothing would tell of a server that lost its rows.
    if (page !== kept && freezePage(page.found) && page.changes !== '') this.pages.set(name, page)
    return page.found
  }

  /** The page as it is now; undefined where it must be made anew. */
  private async asItIs(kept: Page, place: Asked, question: Find): Promise<Page | undefined> {
    const since = lastOf(kept.changes)
    const now = await this.changesIn(place, since)
    if (now === '' || now === kept.changes) return now === '' ? undefined : kept
    const names = dependencies(question)
    const changed = changesOf(now, names)
    const told = this.told.get(nameOf(place, ''))?.since(since)
    if (changed !== changesOf(kept.changes, names) && (told?.some(concerns(question)) ?? true)) return undefined
    const ids = new Set(kept.found.rows.map(({ id }) => id))
    const isSame = told === undefined ? lastOf(now) === since : !told.some(({ id }) => ids.has(id))
    if (isSame || ids.size === 0) return { ...kept, changes: now }
    return this.withRowsAnew(kept, place, (changes) => changesOf(changes, names) === changed)
  }

  private async withRowsAnew(kept: Page, place: Asked, holds: (changes: string) => boolean): Promise<Page | undefined> {
    const { found } = kept
    const keys = [...placeKeys(place.key), ...tableKeys(place.key, place.table).slice(0, 5)]
    const ids = found.rows.map(({ id }) => id)
    const [bytes, changes] = (await answeredWhenFree((how) =>
      place.connection.fcall('page', keys, [place.table.generation, how, ...ids]),
    )) as [(Buffer | null)[], Buffer]
    if (!holds(String(changes))) return undefined
    const rows: StoredRow[] = []
    let rowBytes = 0
    for (const [i, packed] of bytes.entries()) {
      if (packed === null) return undefined
      rows.push(this.remembered(place, ids[i], packed))
      rowBytes += packed.length
    }
    const isSame = rows.every((row, i) => row === found.rows[i])
    return { ...kept, found: isSame ? found : { ...found, rows }, changes: String(changes), rowBytes }
  }

  private async anew(place: Asked, question: Find, names: Names, kept?: Page): Promise<Page> {
    const sizes = new Map<string, number>()
    const stored = (id: string, bytes: Buffer): StoredRow => {
      sizes.set(id, bytes.length)
      return question.limit > PAGE_ROWS_MAX ? unpacked(place, id, bytes) : this.remembered(place, id, bytes)
    }
    const before = names.before === undefined ? undefined : this.pages.get(names.before)
    const known: Known = {
      total: names.question === undefined ? undefined : this.totals.get(names.question),
      before: before && { next: before.found.next, changes: before.changes },
      first: kept?.first,
    }
    const answer = await findRows({ ...place, stored }, question, known)
    await this.confirm(place.key)
    const { found, changes } = answer
    if (names.question !== undefined && found.total !== undefined && changes !== '')
      this.totals.set(names.question, { total: found.total, changes })
    return { ...answer, rowBytes: found.rows.reduce((sum, { id }) => sum + sizes.get(id)!, 0) }
  }

  private remembered(place: Asked, id: string, bytes: Buffer): StoredRow {
    return this.rows.row(nameOf(place, id), bytes, () => unpacked(place, id, bytes))
  }

  /** Which change touched what last; learns what changes did since the last ones that are known, or since that one. */
  private changesIn(place: Asked, since: string): Promise<string> {
    const { connection, key, table } = place
    const name = nameOf(place, '')
    const keys = [key, ...tableKeys(key, table).slice(0, 6)]
    return this.lastChanges.ask(name, async () => {
      const known = this.told.get(name) ?? new ToldChanges(since)
      const answer = (await connection.fcall('changes', keys, [table.generation, known.last])) as [Buffer, Buffer[]?]
      const changes = String(answer[0])
      const [, told] = answer
      known.add(told ?? [])
      this.told.set(name, told === undefined ? new ToldChanges(lastOf(changes)) : known)
      return changes
    })
  }
}

/** The last change of any row. */
const lastOf = (changes: string): string => changesOf(changes, ['rows'])

const nameOf = ({ key, table }: Asked, what: string): string => `${key} ${table.generation} ${what}`

const namesOf = (place: Asked, question: Find): Names => {
  const asked = questionKey(question)
  const name = (what: string | undefined): string | undefined => (what === undefined ? undefined : nameOf(place, what))
  const { offset = 0, limit } = question
  return {
    question: name(asked),
    page: name(pageKey(question, asked)),
    before: offset < limit ? undefined : name(pageKey({ ...question, offset: offset - limit }, asked)),
  }
}

const unpacked = ({ scope }: Asked, id: string, bytes: Buffer): StoredRow => ({ scope, id, row: unpackRow(bytes) })
