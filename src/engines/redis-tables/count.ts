import type { Conditions, Counted, Find, Found, Grouping, Term } from '../table-store.ts'
import { rangesOf, stretchFrom } from '../table-store.ts'
import { decoded, encoded } from './terms.ts'
import { type TableAt, type Visit, walkOnce } from './walk.ts'

type Finds = (question: Find) => Promise<Found>

/** Counts the rows of questions by groups: the values are looked up one after the other, with a query for each. */
export const countGroups = async (
  place: TableAt,
  find: Finds,
  questions: readonly Conditions[],
  grouping: Grouping,
): Promise<Counted[]> => {
  const groups: Counted[] = []
  const add = async (value: Term, conditions: (question: Conditions) => Conditions): Promise<void> => {
    const counts: number[] = []
    for (const question of questions)
      counts.push((await find({ ...conditions(question), limit: 1, total: true })).total ?? 0)
    if (counts.some((count) => count > 0)) groups.push({ value, counts })
  }
  if (grouping.stepOf === undefined)
    for await (const value of valuesOf(place, grouping.field))
      await add(value, (question) => withValue(question, grouping.field, value))
  else
    for await (const { from, to } of stepsOf(find, grouping))
      await add(from, (question) => ({
        ...question,
        range: undefined,
        ranges: [...rangesOf(question), { field: grouping.field, from, to }],
      }))
  return groups
}

const withValue = (question: Conditions, field: string, value: Term): Conditions => ({
  ...question,
  every: { ...question.every, [field]: [...(question.every?.[field] ?? []), value] },
})

/** The different values of a field, in their order. */
async function* valuesOf(place: TableAt, field: string): AsyncGenerator<Term> {
  const stretch = { index: `e:${field}`, from: '-' as string | Buffer, to: '+' }
  for (;;) {
    const visit: Visit = { ...place, packed: new WeakMap(), isWhole: false, changes: '' }
    const { ids, last, done } = await walkOnce(visit, { stretches: [stretch], checks: [], wanted: 'ids', most: 1 })
    if (ids.length === 0) {
      if (done > 0) return
      continue
    }
    const value = decoded(last.subarray(0, last.length - Buffer.byteLength(ids[0])))
    yield value
    stretch.from = Buffer.concat([Buffer.from('('), encoded(value), Buffer.of(255)])
  }
}

/** The stretches of values that contain rows. */
async function* stepsOf(find: Finds, { field, stepOf }: Grouping): AsyncGenerator<{ from: string; to: string }> {
  for (let after: string | undefined; ; ) {
    const range = { field, ...(after !== undefined && { from: after }) }
    const { rows } = await find({ range, sort: { field, order: 'asc' }, limit: 1 })
    const first = rows.at(0)?.row[field] as string | undefined
    if (first === undefined || stepOf === undefined) return
    const { last, next } = stretchFrom(stepOf, first)
    yield { from: first, to: last }
    after = next
  }
}
