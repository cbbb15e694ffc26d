import { RecentMap } from '../../kernel/recent-map.ts'
import { freezePage, PAGE_ROWS_MAX, PAGES_BYTES, pageKey, pageWeight, questionKey, RowMemory } from '../page-memory.ts'
import type { Find, Found, StoredRow } from '../table-store.ts'
import { answeredWhenFree } from './busy.ts'
import { changesOf, dependencies } from './changes.ts'
import { findRows } from './find.ts'
import { Joint } from './joint.ts'
import { placeKeys, tableKeys } from './places.ts'
import { unpackRow } from './terms.ts'
import type { Place } from './walk.ts'

interface Page {
  found: Found
  /** The last changes in its table and place for which it is known to hold, as Redis tells them. */
  changes: string
  rowBytes: number
}

/** Where a question is answered. */
type Asked = Omit<Place, 'stored'>

/**
 * Answers pages, and remembers them with the last changes of what they follow from (changes.ts). One call, shared by all
 * who ask at the same time, tells of a table and place whether pages still hold, whoever wrote there. Rows that have
 * changed, but neither come nor gone nor moved, are read by their ids.
 */
export class KnownPages {
  private readonly confirm: (key: string) => Promise<void>
  private readonly pages = new RecentMap<string, Page>(PAGES_BYTES, ({ rowBytes }, key) => pageWeight(rowBytes, key))
  private readonly rows = new RowMemory()
  private readonly answers = new Joint<Found>()
  private readonly lastChanges = new Joint<string>()

  /** `confirm` rejects where the server of a key may have lost what it had. */
  constructor(confirm: (key: string) => Promise<void>) {
    this.confirm = confirm
  }

  /** @throws Failure engine_down, overloaded */
  async find(place: Asked, question: Find): Promise<Found> {
    const page = pageKey(question, questionKey(question))
    if (page === undefined) return (await this.anew(place, question)).found
    const name = `${place.key} ${place.table.generation} ${page}`
    return this.answers.ask(name, () => this.answer(name, place, question))
  }

  private async answer(name: string, place: Asked, question: Find): Promise<Found> {
    const kept = this.pages.get(name)
    const page = (kept && (await this.asItIs(kept, place, question))) ?? (await this.anew(place, question))
    // Where nothing was ever changed, nothing would tell of a server that lost its rows.
    if (page !== kept && freezePage(page.found) && page.changes !== '') this.pages.set(name, page)
    return page.found
  }

  /** The page as it is now; undefined where it must be made anew. */
  private async asItIs(kept: Page, place: Asked, question: Find): Promise<Page | undefined> {
    const now = await this.changesIn(place)
    if (now === '' || now === kept.changes) return now === '' ? undefined : kept
    const names = dependencies(question)
    const before = changesOf(kept.changes, names)
    if (changesOf(now, names) !== before) return undefined
    const isSame = changesOf(now, ['rows']) === changesOf(kept.changes, ['rows'])
    if (isSame || kept.found.rows.length === 0) return { ...kept, changes: now }
    return this.withRowsAnew(kept, place, (changes) => changesOf(changes, names) === before)
  }

  private async withRowsAnew(
    { found }: Page,
    place: Asked,
    holds: (changes: string) => boolean,
  ): Promise<Page | undefined> {
    const keys = [...placeKeys(place.key), ...tableKeys(place.key, place.table).slice(0, 5)]
    const ids = found.rows.map(({ id }) => id)
    const [bytes, , changes] = (await answeredWhenFree((how) =>
      place.connection.fcall('page', keys, [place.table.generation, how, ...ids]),
    )) as [(Buffer | null)[], Buffer, Buffer]
    if (!holds(String(changes))) return undefined
    const rows: StoredRow[] = []
    let rowBytes = 0
    for (const [i, packed] of bytes.entries()) {
      if (packed === null) return undefined
      rows.push(this.remembered(place, ids[i], packed))
      rowBytes += packed.length
    }
    const isSame = rows.every((row, i) => row === found.rows[i])
    return { found: isSame ? found : { ...found, rows }, changes: String(changes), rowBytes }
  }

  private async anew(place: Asked, question: Find): Promise<Page> {
    const sizes = new Map<string, number>()
    const stored = (id: string, bytes: Buffer): StoredRow => {
      sizes.set(id, bytes.length)
      return question.limit > PAGE_ROWS_MAX ? this.unpacked(place, id, bytes) : this.remembered(place, id, bytes)
    }
    const { found, changes } = await findRows({ ...place, stored }, question)
    await this.confirm(place.key)
    return { found, changes, rowBytes: found.rows.reduce((sum, { id }) => sum + sizes.get(id)!, 0) }
  }

  private remembered(place: Asked, id: string, bytes: Buffer): StoredRow {
    const name = `${place.key} ${place.table.generation} ${id}`
    return this.rows.row(name, bytes, () => this.unpacked(place, id, bytes))
  }

  private unpacked({ scope }: Asked, id: string, bytes: Buffer): StoredRow {
    return { scope, id, row: unpackRow(bytes) }
  }

  private changesIn({ connection, key, table }: Asked): Promise<string> {
    const keys = [key, ...tableKeys(key, table).slice(0, 5)]
    return this.lastChanges.ask(`${key} ${table.generation}`, async () =>
      String(await connection.fcall('changes', keys, [table.generation])),
    )
  }
}
