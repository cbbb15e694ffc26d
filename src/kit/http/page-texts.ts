import type { Row } from '../../kernel/table.ts'

/** Each row and page is kept as so many viewers see it; more begin anew. */
const VIEWS_MAX = 4
const encoder = new TextEncoder()

/**
 * The texts of rows and pages as they were answered. They are kept with the rows themselves: an engine that answers the
 * same row again has frozen it (TableStore), and a changed row is another object.
 */
export class PageTexts {
  private readonly rows = new WeakMap<object, Map<string, string>>()
  private readonly pages = new WeakMap<object, Map<string, Uint8Array>>()

  /**
   * The JSON of all rows of a page, an array. `view` names how rows are shown: two that show a row differently have
   * different names.
   */
  ofPage(page: readonly { row: Row }[], view: string, show: (row: Row) => Row): Uint8Array {
    return keeping(this.pages, page, view, () => {
      const texts = page.map(({ row }) => keeping(this.rows, row, view, () => JSON.stringify(show(row))))
      return encoder.encode(`[${texts.join()}]`)
    })
  }
}

const keeping = <Text>(kept: WeakMap<object, Map<string, Text>>, of: object, view: string, make: () => Text): Text => {
  if (!Object.isFrozen(of)) return make()
  let texts = kept.get(of)
  const text = texts?.get(view)
  if (text !== undefined) return text
  const made = make()
  if (texts === undefined || texts.size >= VIEWS_MAX) {
    texts = new Map()
    kept.set(of, texts)
  }
  texts.set(view, made)
  return made
}
