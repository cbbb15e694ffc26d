import { type Conditions, type Counted, type Grouping, stretchFrom } from '../table-store.ts'
import type { KnownAnswers } from './answers.ts'
import type { RowSet } from './bits.ts'
import { Finder } from './find.ts'
import { AFTER_ALL, equalityField, fieldKey, orderBytes, rangeField, termIn, textIn } from './layout.ts'
import { type FindSource, QuestionSets } from './sets.ts'

/** Cost of passing an entry of an index for each question, in entries of a walk. */
const COUNT_ENTRIES = 2

/** Counts the rows of questions by groups, on one snapshot: a walk over the index of the field that reads no row. */
export const countGroups = async (
  source: FindSource,
  questions: readonly Conditions[],
  grouping: Grouping,
  known: KnownAnswers,
): Promise<Counted[]> => {
  const sets: RowSet[] = []
  for (const question of questions) sets.push(await new Finder(source, { ...question, limit: 1 }, known).rows())
  // No walk without a match.
  if (sets.every(({ size }) => size === 0)) return []
  const groups = grouping.stepOf === undefined ? byValue(source, sets, grouping.field) : bySteps(source, sets, grouping)
  return (await groups).filter(({ counts }) => counts.some((count) => count > 0))
}

const byValue = async (source: FindSource, sets: readonly RowSet[], field: string): Promise<Counted[]> => {
  const turns = new QuestionSets(source, { limit: 1 })
  const at = fieldKey(turns.space, equalityField(source.record, field))
  const groups: Counted[] = []
  let [name, counts]: [string | undefined, number[]] = [undefined, []]
  const range = { start: at, end: Buffer.concat([at, AFTER_ALL]), ...turns.options }
  for (const { key, value } of source.readers.postingKeys.getRange(range)) {
    const [bytes, chunkAt] = [key as string, (key as string).length - 4]
    const term = bytes.slice(at.length, chunkAt)
    if (term !== name) {
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

const bySteps = async (source: FindSource, sets: readonly RowSet[], grouping: Grouping): Promise<Counted[]> => {
  const turns = new QuestionSets(source, { limit: 1 })
  const at = fieldKey(turns.space, rangeField(source.record, grouping.field))
  const end = Buffer.concat([at, AFTER_ALL])
  const groups: Counted[] = []
  for (let start: Buffer = Buffer.concat([at, Buffer.of(1)]); ; ) {
    const [key] = source.env.order.getKeys({ start, end, limit: 1, ...turns.options })
    if (key === undefined) return groups
    const value = textIn(Buffer.from(key).subarray(at.length))
    const { next } = stretchFrom(grouping.stepOf as NonNullable<Grouping['stepOf']>, value)
    const counts = sets.map(() => 0)
    const stop: Buffer = Buffer.concat([at, orderBytes(next)])
    for (const { value: no } of source.readers.order.getRange({ start, end: stop, ...turns.options })) {
      for (const [i, set] of sets.entries()) if (set.has(no)) counts[i] += 1
      const pause = turns.pass(1)
      if (pause !== undefined) await pause
    }
    groups.push({ value, counts })
    start = stop
  }
}
