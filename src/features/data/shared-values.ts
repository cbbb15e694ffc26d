import { breathe } from '../../kernel/breath.ts'
import type { Rows } from '../../kit/consumers/projection.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { isEmpty } from '../../kit/values/value-type.ts'
import type { RecordValues } from './events.ts'
import { areValid, claimKey, isUnique, type Shape, uniqueTermOf } from './record-index.ts'
import { RECORDS, type RecordRow, valueIn } from './views.ts'

/*
 * Records that share a unique value: from before the field became unique, or written while it did. They are detected
 * when the log reaches the second of them, so timing does not matter.
 */

const AT_ONCE = 16

interface TypeRows {
  rows: Rows
  organizationId: string
  shape: Shape
}

/**
 * Marks the given records that share such a value, and the records that they share it with; returns whether any do.
 * Other sharers are already marked unless there was only one: so finding one besides the given records is enough.
 */
export const markShared = async (place: TypeRows, ids: readonly string[]): Promise<boolean> => {
  const { rows, organizationId, shape } = place
  const shared = new Set<string>()
  await severalAtOnce(ids, AT_ONCE, async (id) => {
    const pause = breathe()
    if (pause !== undefined) await pause
    const row = await rows.get<RecordRow>(RECORDS, organizationId, id)
    const sharers = row === undefined ? [] : await sharersOf(place, row, ids.length + 1)
    for (const one of sharers) shared.add(one._id)
    if (sharers.length > 0) shared.add(id)
  })
  for (const id of shared) {
    const row = await rows.get<RecordRow>(RECORDS, organizationId, id)
    if (row === undefined || row.isShared === true) continue
    const terms = [...(row.terms ?? []), sharedTermOf(shape._id)]
    rows.put(RECORDS, organizationId, id, { ...row, terms, isShared: true, isInvalid: true })
  }
  return shared.size > 0
}

/** Whether a record has such a value without a claim: another one may have it. */
export const hasUntaken = (shape: Shape, { values, uniques = [] }: Pick<RecordValues, 'values' | 'uniques'>): boolean =>
  shape.fields.some((field) => {
    if (!isUnique(shape, field) || isEmpty(valueIn(values, field._id))) return false
    return !uniques.some(({ key }) => key === claimKey(shape, field))
  })

/** Unmarks records whose only other sharer has changed its value or is gone. */
export const unmarkLeft = async (place: TypeRows, before: RecordRow): Promise<void> => {
  const { rows, organizationId, shape } = place
  for (const row of await sharersOf(place, before)) {
    if (row.isShared !== true || (await sharersOf(place, row)).length > 0) continue
    const { isShared: _isShared, isInvalid: _isInvalid, ...others } = row
    const terms = row.terms?.filter((term) => term !== sharedTermOf(shape._id))
    const isInvalid = row.isDangling === true || !areValid(shape, row.values)
    rows.put(RECORDS, organizationId, row._id, { ...others, terms, ...(isInvalid && { isInvalid }) })
  }
}

/** Whether any record of the type is marked. */
export const haveShared = async ({ rows, organizationId, shape }: TypeRows): Promise<boolean> =>
  (await rows.findBy(RECORDS, organizationId, 'terms', sharedTermOf(shape._id), 1)).length > 0

/** Term that finds the marked records of a type; no value produces such a term. */
const sharedTermOf = (dataTypeId: string): string => `shared ${dataTypeId}`

/** Some of the records that share such values, or would: `enough` for each value, including the record itself. */
const sharersOf = async (
  { rows, organizationId, shape }: TypeRows,
  { _id, values }: RecordRow,
  enough = 2,
): Promise<RecordRow[]> => {
  const sharers: RecordRow[] = []
  for (const field of shape.fields) {
    const value = valueIn(values, field._id)
    if (value === undefined || !isUnique(shape, field)) continue
    const term = uniqueTermOf(shape._id, field, value)
    const found = await rows.findBy<RecordRow>(RECORDS, organizationId, 'terms', term, enough)
    sharers.push(...found.flatMap(({ id, row }) => (id === _id ? [] : [row])))
  }
  return sharers
}
