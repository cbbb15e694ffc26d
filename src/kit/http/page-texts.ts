import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'

/** Views in which each row and page is kept; further ones start over. */
const VIEWS_MAX = 4
/** Size of all texts together; up to twice as much is kept. */
const TEXTS_BYTES = 32 * 1024 * 1024
/** Memory of a text beside its characters and the name of its view: heads of objects, and its share of the map. */
const TEXT_BYTES = 300
const TWO_BYTES = /[^\0-\xff]/
const encoder = new TextEncoder()

type Text = string | Uint8Array

/** The texts of a row or page by view. */
interface Views {
  texts: ReadonlyMap<string, Text>
  bytes: number
}

/**
 * The texts of rows and pages as they were answered. They are kept with the rows themselves: an engine that answers the
 * same row again has frozen it (TableStore), and a changed row is another object.
 */
export class PageTexts {
  private readonly kept: RecentMap<object, Views>

  constructor(bytes = TEXTS_BYTES) {
    this.kept = new RecentMap(
      bytes,
      (views) => views.bytes,
      () => new WeakMap(),
    )
  }

  /** The JSON of all rows of a page, an array. `view` names the way rows are shown: two ways have different names. */
  ofPage(page: readonly { row: Row }[], view: string, show: (row: Row) => Row): Uint8Array {
    return this.keeping(page, view, () => {
      const texts = page.map(({ row }) => this.keeping(row, view, () => JSON.stringify(show(row))))
      return encoder.encode(`[${texts.join()}]`)
    })
  }

  private keeping<Made extends Text>(of: object, view: string, make: () => Made): Made {
    if (!Object.isFrozen(of)) return make()
    const views = this.kept.get(of)
    const text = views?.texts.get(view)
    if (text !== undefined) return text as Made
    const made = make()
    const others = views === undefined || views.texts.size >= VIEWS_MAX ? NONE : views
    this.kept.set(of, {
      texts: new Map([...others.texts, [view, made]]),
      bytes: others.bytes + view.length + bytesOf(made),
    })
    return made
  }
}

const NONE: Views = { texts: new Map(), bytes: 0 }

const bytesOf = (text: Text): number =>
  TEXT_BYTES + (typeof text === 'string' && TWO_BYTES.test(text) ? 2 * text.length : text.length)

/** Texts of the whole process: rows of two tables are never the same object. */
export const pageTexts = new PageTexts()
