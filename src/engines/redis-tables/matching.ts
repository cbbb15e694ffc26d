import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { wordsOfRow } from '../../kernel/words.ts'
import { type Find, rangesOf, wordGroupsOf } from '../table-store.ts'
import { insideOf, isSortable, textOf } from './terms.ts'

type Conditions = Pick<Find, 'where' | 'every' | 'range' | 'ranges' | 'text' | 'words'>

/** A function that tells whether a row meets every condition of a question, by itself. */
export const matcherOf = ({ text: fields = [] }: TableDeclaration, question: Conditions): ((row: Row) => boolean) => {
  const where = Object.entries(question.where ?? {}).map(([field, wanted]) => ({
    field,
    wanted: new Set<unknown>(valuesOf(wanted)),
  }))
  const every = Object.entries(question.every ?? {})
  const ranges = rangesOf(question).map((range) => ({ field: range.field, isInside: insideOf(range) }))
  const groups = wordGroupsOf(question)
  return (row) =>
    where.every(({ field, wanted }) => membersOf(row[field]).some((member) => wanted.has(member))) &&
    every.every(([field, wanted]) =>
      wanted.every((values) => valuesOf(values).some((one) => membersOf(row[field]).includes(one))),
    ) &&
    ranges.every(({ field, isInside }) => isSortable(row[field]) && isInside(textOf(row[field]))) &&
    hasWords(row, fields, groups)
}

const membersOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value])

export const valuesOf = (wanted: NonNullable<Find['where']>[string]): readonly (string | number | boolean)[] =>
  Array.isArray(wanted) ? (wanted as (string | number | boolean)[]) : [wanted as string | number | boolean]

const hasWords = (row: Row, fields: readonly string[], groups: ReturnType<typeof wordGroupsOf>): boolean => {
  if (groups.length === 0) return true
  const words = wordsOfRow(row, fields)
  return groups.every((group) => group.some((start) => words.some((word) => word.startsWith(start))))
}

/** @throws Error for a question without its index. */
export const assertIndexed = (
  declaration: TableDeclaration,
  { where = {}, every = {}, range, ranges: more, text, words, sort }: Find,
): void => {
  const { name, equality = [], range: ranges = [], text: texts = [], lives } = declaration
  if (lives === 'row') throw new Error(`rows of ${name} live by themselves and are asked for by id`)
  for (const field of Object.keys({ ...where, ...every }))
    if (!equality.includes(field)) throw new Error(`table ${name} has no index of equality on ${field}`)
  for (const field of [...rangesOf({ range, ranges: more }).map((one) => one.field), sort?.field])
    if (field !== undefined && !ranges.includes(field)) throw new Error(`table ${name} has no range index on ${field}`)
  if ((text !== undefined || words !== undefined) && texts.length === 0)
    throw new Error(`table ${name} has no index of words`)
}
