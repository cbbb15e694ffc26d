import type { Find, Range, TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { assertShown } from '../../kernel/hidden-fields.ts'
import type { ListQuery } from '../../kit/http/list-query.ts'
import { askedValue, askedValues, assertKnown } from '../../kit/values/asked-values.ts'
import type { ValueRule } from '../../kit/values/value-type.ts'
import { RANGED, type StoredField } from './fields.ts'
import { absentTermOf, boundText, isFiltered, slotNames, sortBounds, termOf } from './record-index.ts'
import { bareName, type DataTypeRow, hiddenOf, RECORDS } from './views.ts'

/** Table query of `?values.…=` and `?sortBy=values.…`. */
export interface RecordQuestion {
  where: NonNullable<Find['where']>
  every?: Find['every']
  range?: Range
  ranges?: readonly Range[]
  sort?: Find['sort']
}

const VALUES = 'values.'
const BOUNDS = ['from', 'to'] as const

/**
 * Table query for one type. Filters and sorts by a field that the caller's role hides are refused: their answer would
 * reveal its value. @throws Failure invalid, forbidden with `fields`
 */
export const recordQuestion = async (
  tables: Pick<TableStore, 'find'>,
  caller: UserCaller,
  type: DataTypeRow,
  query: ListQuery,
): Promise<RecordQuestion> => {
  const asked = askedFields(type, query)
  assertFieldsShown(
    caller,
    [type],
    asked.map(({ field }) => field.name),
  )
  const terms: string[][] = []
  const bounds = new Map<StoredField, { from?: string; to?: string }>()
  for (const { field, bound, name, text } of asked) {
    if (bound === 'sort') continue
    if (bound === undefined) {
      const isHeld = async (term: string): Promise<boolean> =>
        (await tables.find(RECORDS, caller.organizationId, { where: { terms: term }, limit: 1 })).rows.length > 0
      terms.push(await askedTerms(type, field, { texts: text as readonly string[], path: `/${name}` }, isHeld))
    } else {
      const value = askedValue(bareOf(field), text as string, `/${name}`)
      bounds.set(field, { ...bounds.get(field), [bound]: boundText(type._id, field, value) })
    }
  }
  const ranges = [...bounds].map(([field, own]): Range => {
    const all = sortBounds(type._id, field)
    return {
      field: slotNames[field.slot as number],
      from: own.from ?? `${all.from.slice(0, -1)}!`,
      to: own.to ?? all.to,
    }
  })
  const sorted = asked.find(({ bound }) => bound === 'sort')?.field
  const isInvalid = query.invalid as boolean | undefined
  // A value of a field already implies its type.
  const isImplied = isInvalid === undefined && (terms.length > 0 || ranges.length > 0)
  return {
    where: {
      ...(!isImplied && { dataTypeId: type._id }),
      ...(isInvalid === true && { isInvalid }),
    },
    ...(terms.length > 0 && { every: { terms } }),
    ...(ranges.length > 0 && { range: ranges[0], ranges: ranges.slice(1) }),
    ...orderOf(query, type, sorted, ranges),
  }
}

/** @throws Failure forbidden that lists the fields that the caller's role hides in one of the types. */
export const assertFieldsShown = (
  caller: UserCaller,
  types: readonly DataTypeRow[],
  names: readonly string[],
): void => {
  if (names.length > 0)
    assertShown(
      types.flatMap((type) => [...hiddenOf(caller, type)]),
      names,
    )
}

/** Whether the query has `values.<name>` parameters or sorts by one. */
export const asksForValues = (query: ListQuery): boolean =>
  Object.keys(query).some((name) => name.startsWith(VALUES)) || query.sortBy?.startsWith(VALUES) === true

interface Asked {
  name: string
  field: StoredField
  bound?: 'from' | 'to' | 'sort'
  text?: string | readonly string[]
}

const askedFields = (type: DataTypeRow, query: ListQuery): Asked[] => {
  const asked = Object.entries(query).flatMap(([name, text]): Asked[] =>
    name.startsWith(VALUES) && text !== undefined ? [filterOf(type, name, text)] : [],
  )
  const { sortBy } = query
  if (sortBy?.startsWith(VALUES) !== true) return asked
  const field = type.fields.find(({ name }) => name === bareName(sortBy))
  if (field === undefined) throw invalid('/sortBy', `names no field of ${type.name}`)
  return [...asked, { name: 'sortBy', field, bound: 'sort' }]
}

const filterOf = (type: DataTypeRow, name: string, sent: unknown): Asked => {
  const texts = [sent].flat() as string[]
  const asked = bareName(name)
  const field = type.fields.find((one) => one.name === asked)
  if (field !== undefined) {
    if (!isFiltered(field))
      throw invalid(`/${name}`, `cannot be filtered by, nor by null: no index has the values of a ${field.type}`)
    return { name, field, text: texts }
  }
  const bound = BOUNDS.find((one) => asked.endsWith(`.${one}`))
  const bounded = type.fields.find((one) => `${one.name}.${bound}` === asked)
  if (bound === undefined || bounded === undefined) throw invalid(`/${name}`, `names no field of ${type.name}`)
  if (!RANGED.includes(bounded.type) || bounded.slot === undefined)
    throw invalid(`/${name}`, `must name a field of the types ${RANGED.join(', ')}`)
  if (texts.length > 1) throw invalid(`/${name}`, 'must be sent once')
  return { name, field: bounded, bound, text: texts[0] }
}

/** Terms of records for the values of a parameter. */
const askedTerms = async (
  type: DataTypeRow,
  field: StoredField,
  { texts, path }: { texts: readonly string[]; path: string },
  isHeld: (term: string) => Promise<boolean>,
): Promise<string[]> => {
  const { values, isAbsent, strange } = askedValues(bareOf(field), texts, path)
  await assertKnown(field, strange, path, (value) => isHeld(termOf(type._id, field, value)))
  return [
    ...values.map((value) => termOf(type._id, field, value)),
    ...(isAbsent ? [absentTermOf(type._id, field)] : []),
  ]
}

/** Rules without later restrictions: a filter finds values from before the field got its present rules. */
const bareOf = ({ type, options }: StoredField): ValueRule => ({ type, ...(options !== undefined && { options }) })

/** By default, a bounded list is sorted by the field that bounds it. */
const orderOf = (
  { sortBy, sortOrder = 'asc' }: ListQuery,
  type: DataTypeRow,
  sorted: StoredField | undefined,
  ranges: readonly Range[],
): Pick<RecordQuestion, 'sort'> => {
  if (sorted === undefined)
    return sortBy !== undefined || ranges.length === 0 ? {} : { sort: { field: ranges[0].field, order: sortOrder } }
  if (sorted.slot === undefined) throw invalid('/sortBy', 'cannot be sorted by')
  const field = slotNames[sorted.slot]
  return { sort: { field, order: sortOrder, within: sortBounds(type._id, sorted) } }
}
