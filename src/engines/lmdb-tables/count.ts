import { type Conditions, type Counted, type Grouping, stretchFrom } from '../table-store.ts'
import type { KnownAnswers } from './answers.ts'
import type { RowSet } from './bits.ts'
import { Finder } from './find.ts'
import { AFTER_ALL, fieldKey, orderBytes, rangeField, textIn } from './layout.ts'
import { type FindSource, QuestionSets } from './sets.ts'
import { countByValue } from './steps.ts'

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
  const groups =
    grouping.stepOf === undefined ? countByValue(source, sets, grouping.field) : bySteps(source, sets, grouping)
  return ((await groups) ?? []).filter(({ counts }) => counts.some((count) => count > 0))
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
