import type { Find } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Json } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { ABSENT_VALUE, type ListQuery, type ListShape } from './list-query.ts'

interface Asking {
  caller: UserCaller
  query: ListQuery
  every?: Find['every']
}

/** Condition that one filter expresses. */
export interface Asked {
  where: NonNullable<Find['where']>
  /** Member of the row. */
  field: string
  /** Rows without it, or with an empty list, match too. */
  isAbsent: boolean
  /** Only those rows match. */
  isAbsentOnly: boolean
}

export const askedFor = (shape: ListShape, caller: UserCaller, name: string, said: Json): Asked => {
  const isUuid = shape.filters[name].format === 'uuid'
  const kept = (value: Json): Json => (isUuid ? String(value).toLowerCase() : value)
  const isSeveral = shape.several?.includes(name) === true
  const values = [said].flat().filter((value) => !isSeveral || value !== ABSENT_VALUE)
  const value = isSeveral ? values.map(kept) : kept(said)
  const where = shape.conditions?.[name]?.(value, caller) ?? { [name]: value as string }
  const isAbsent = isSeveral && values.length < [said].flat().length
  return { where, field: Object.keys(where)[0] ?? name, isAbsent, isAbsentOnly: isAbsent && values.length === 0 }
}

/** Filters that ask for rows without something. */
export const absencesOf = (shape: ListShape, { query, caller }: Pick<Asking, 'query' | 'caller'>): Asked[] =>
  (shape.several ?? [])
    .filter((name) => query[name] !== undefined && !shape.computed?.includes(name))
    .map((name) => askedFor(shape, caller, name, query[name] as Json))
    .filter(({ isAbsent }) => isAbsent)

/** The table has an index of rows without it. */
export const isIndexed = ({ absent }: ListShape, { field, isAbsentOnly }: Asked): boolean =>
  isAbsentOnly && absent?.of.includes(field) === true

/** `every` of the request, with fields that an index says are absent. */
export const withAbsent = (shape: ListShape, request: Asking): Find['every'] => {
  const fields = absencesOf(shape, request).flatMap((one) => (isIndexed(shape, one) ? [one.field] : []))
  return shape.absent === undefined || fields.length === 0
    ? request.every
    : { ...request.every, [shape.absent.field]: fields }
}

/** Whether a row lacks the field, or has one of its values. */
export const hasAny = (row: Row, { where, field }: Asked): boolean => {
  const own = [row[field] ?? []].flat()
  return own.length === 0 || own.some((value) => [where[field]].flat().includes(value as string))
}
