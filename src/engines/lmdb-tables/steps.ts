import type { Counted } from '../table-store.ts'
import type { RowSet } from './bits.ts'
import { AFTER_ALL, equalityField, fieldKey, type KeyBounds, orderBytes, rangeField, termIn } from './layout.ts'
import { type FindSource, QuestionSets } from './sets.ts'

/** Cost of passing an entry of an index for each set, in entries of a walk. */
const COUNT_ENTRIES = 2
/** Values of a field by which few rows are told apart. */
const STEPS_MAX = 32

/** Counts the rows of sets by the values of a field; undefined where there are more than `valuesMax`. */
export const countByValue = async (
  source: FindSource,
  sets: readonly RowSet[],
  field: string,
  valuesMax = Number.POSITIVE_INFINITY,
): Promise<Counted[] | undefined> => {
  const turns = new QuestionSets(source, { limit: 1 })
  const at = fieldKey(turns.space, equalityField(source.record, field))
  const groups: Counted[] = []
  let [name, counts]: [string | undefined, number[]] = [undefined, []]
  const range = { start: at, end: Buffer.concat([at, AFTER_ALL]), ...turns.options }
  for (const { key, value } of source.readers.postingKeys.getRange(range)) {
    const [bytes, chunkAt] = [key as string, (key as string).length - 4]
    const term = bytes.slice(at.length, chunkAt)
    if (term !== name) {
      if (groups.length === valuesMax) return undefined
      name = term
      counts = sets.map(() => 0)
      groups.push({ value: termIn(Buffer.from(term, 'latin1')), counts })
    }
    const chunk = Buffer.from(bytes.slice(chunkAt), 'latin1').readUInt32BE(0)
    for (const [i, set] of sets.entries()) counts[i] += set.countIn(chunk, value)
    const pause = turns.pass(COUNT_ENTRIES * sets.length)
    if (pause !== undefined) await pause // after the chunk was used: other questions read into its memory
  }
  return groups
}

/**
 * The stretches of an order's index in which rows of a set lie, where the field has few values and all are numbers: a
 * team's tasks may all have the last priority, behind most others.
 */
export const stepsOf = async (source: FindSource, set: RowSet, field: string): Promise<KeyBounds[] | undefined> => {
  const { record } = source
  if (!record.equality.includes(field)) return undefined
  const groups = await countByValue(source, [set], field, STEPS_MAX)
  if (groups?.every(({ value }) => typeof value === 'number') !== true) return undefined
  const at = fieldKey(new QuestionSets(source, { limit: 1 }).space, rangeField(record, field))
  const stretch = (bytes: Buffer): KeyBounds => {
    const low = Buffer.concat([at, bytes])
    return { low, high: Buffer.concat([low, AFTER_ALL]) }
  }
  const values = groups.filter(({ counts }) => counts[0] > 0).map(({ value }) => stretch(orderBytes(value)))
  // Rows without the field come first.
  return [stretch(orderBytes(null)), ...values]
}
