import type { Row } from '../../kernel/table.ts'
import { wordsOfRow } from '../../kernel/words.ts'
import { type Find, rangesOf, wordGroupsOf } from '../table-store.ts'
import { equalityBytes, type TableRecord } from './layout.ts'
import { insideOf } from './order.ts'
import { equalityTerms, sortable } from './terms.ts'

/** Tells whether a row matches a question, as the indexes would. */
export const fitting = (record: TableRecord, question: Find): ((row: Row) => boolean) => {
  const { where = {}, every = {} } = question
  const anyOf = Object.entries(where).map(([field, wanted]) => ({ field, terms: [wanted].flat().map(termOf) }))
  const allOf = Object.entries(every).map(([field, wanted]) => ({
    field,
    groups: wanted.map((values) => [values].flat().map(termOf)),
  }))
  const groups = wordGroupsOf(question)
  const ranges = rangesOf(question).map((range) => ({ field: range.field, isInside: insideOf(range) }))
  return (row) => {
    const has = (field: string): ((term: string | undefined) => boolean) => {
      const terms = equalityTerms(row[field])
      return (term) => term !== undefined && terms.has(term)
    }
    if (!anyOf.every(({ field, terms }) => terms.some(has(field)))) return false
    if (!allOf.every((one) => one.groups.every((terms) => terms.some(has(one.field))))) return false
    if (!ranges.every(({ field, isInside }) => isInside(sortable(row[field])))) return false
    if (groups.length === 0) return true
    const words = wordsOfRow(row, record.text)
    return groups.every((group) => words.some((word) => group.some((start) => word.startsWith(start))))
  }
}

const termOf = (value: unknown): string | undefined => equalityBytes(value)?.toString('latin1')
