import { type Conditions, type Find, type Range, rangesOf, wordGroupsOf } from '../../src/engines/table-store.ts'
import type { Row, TableDeclaration } from '../../src/kernel/table.ts'
import { wordsOfRow } from '../../src/kernel/words.ts'

export interface NamedRow {
  id: string
  row: Row
}

/** Answers a question by looking at every row. @throws Error where an index of it is not declared. */
export const answered = (rows: readonly NamedRow[], question: Omit<Find, 'limit'>, table: TableDeclaration) => {
  assertIndexed(question, table)
  const { sort } = question
  const isMatch = matcherOf(question, table)
  const found = rows.filter(({ row }) => isMatch(row))
  found.sort((one, other) => compare(one, other, sort?.field))
  return sort?.order === 'desc' ? found.reverse() : found
}

/** Whether one comes behind the other in the order of the question. */
export const isBehind = (one: NamedRow, other: NamedRow, { sort }: Pick<Find, 'sort'>): boolean =>
  (sort?.order === 'desc' ? -1 : 1) * compare(one, other, sort?.field) > 0

const assertIndexed = ({ where = {}, every = {}, sort, ...rest }: Omit<Find, 'limit'>, table: TableDeclaration) => {
  const { equality = [], range = [], text = [], name } = table
  const isKnown =
    [...Object.keys(where), ...Object.keys(every)].every((field) => equality.includes(field)) &&
    rangesOf(rest).every(({ field }) => range.includes(field)) &&
    (sort === undefined || range.includes(sort.field)) &&
    (text.length > 0 || (rest.text === undefined && rest.words === undefined))
  if (!isKnown) throw new Error(`${name} has no index for this question`)
}

const matcherOf = (question: Conditions, { text = [] }: TableDeclaration): ((row: Row) => boolean) => {
  const { where = {}, every = {} } = question
  const sets = [
    ...Object.entries(where).map(([field, wanted]) => ({ field, wanted })),
    ...Object.entries(every).flatMap(([field, all]) => all.map((wanted) => ({ field, wanted }))),
  ].map(({ field, wanted }) => ({ field, wanted: new Set<unknown>([wanted].flat()) }))
  const ranges = rangesOf(question)
  const groups = wordGroupsOf(question)
  return (row) =>
    sets.every(({ field, wanted }) => hasOne(row[field], wanted)) &&
    ranges.every((range) => isWithin(row[range.field], range)) &&
    groups.every((group) => wordsIn(row, text).some((word) => group.some((start) => word.startsWith(start))))
}

const hasOne = (value: unknown, wanted: ReadonlySet<unknown>): boolean =>
  Array.isArray(value) ? value.some((member) => wanted.has(member)) : wanted.has(value)

const isWithin = (value: unknown, { from, to, goesRound }: Range): boolean => {
  if (value === undefined) return false
  const isFrom = from === undefined || compareValues(value, from) >= 0
  const isTo = to === undefined || compareValues(value, to) <= 0
  const isEither = goesRound === true && from !== undefined && to !== undefined && from > to
  return isEither ? isFrom || isTo : isFrom && isTo
}

const known = new WeakMap<Row, string[]>()

const wordsIn = (row: Row, fields: readonly string[]): string[] => {
  const words = known.get(row) ?? wordsOfRow(row, fields)
  known.set(row, words)
  return words
}

const compare = (one: NamedRow, other: NamedRow, field: string | undefined): number =>
  (field === undefined ? 0 : compareValues(one.row[field], other.row[field])) || compareText(one.id, other.id)

const compareValues = (one: unknown, other: unknown): number => {
  if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined)
  return typeof one === 'number' && typeof other === 'number' ? one - other : compareText(String(one), String(other))
}

const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
