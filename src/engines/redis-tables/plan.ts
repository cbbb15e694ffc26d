import { type Bounds, type Find, rangesOf, stretchesOf, wordGroupsOf } from '../table-store.ts'
import { valuesOf } from './matching.ts'
import { encoded, textStart } from './terms.ts'
import { type Check, countStretches, type Stretch, type Visit } from './walk.ts'

/** A condition with more values is checked on the rows. */
const CHECK_VALUES_MAX = 16

export const ALL: Stretch = { index: '', from: '-', to: '+' }

export const rangeStretch = (field: string, { from, to }: Bounds): Stretch => ({
  index: `r:${field}`,
  // Rows without the field stand first, under a zero byte.
  from: from === undefined ? Buffer.from('[\x01') : Buffer.concat([Buffer.from('['), encoded(from)]),
  to: to === undefined ? '+' : Buffer.concat([Buffer.from('('), encoded(to), Buffer.of(255, 255, 255)]),
})

const valueStretch = (index: string, value: Buffer): Stretch => ({
  index,
  from: Buffer.concat([Buffer.from('['), value]),
  to: Buffer.concat([Buffer.from('('), value, Buffer.of(255)]),
})

export const checksOf = ({ where = {}, every = {} }: Find): Check[] => [
  ...Object.entries(where).map(([field, wanted]) => ({ index: `e:${field}`, values: valuesOf(wanted).map(encoded) })),
  ...Object.entries(every).flatMap(([field, wanted]) =>
    wanted.map((values) => ({ index: `e:${field}`, values: valuesOf(values).map(encoded) })),
  ),
]

export const isLookedUp = ({ values }: Check): boolean => values.length <= CHECK_VALUES_MAX

export interface Plan {
  /** Least to be read: the condition with the fewest entries, or all rows. */
  stretches: Stretch[]
  count: number
  /** Number of all rows. */
  all: number
  /** Whether each of these entries is a matching row, and a different one. */
  isExact: boolean
  /** The checks that some row fails, the most selective first. */
  checks: Check[]
  /** The checks without the one that is read. */
  others: Check[]
}

interface Condition {
  stretches: Stretch[]
  check?: Check
  /** Whether a row has one entry at most. */
  isSingle: boolean
}

export const planOf = async (place: Visit, question: Find): Promise<Plan> => {
  const conditions: Condition[] = [{ stretches: [{ ...ALL }], isSingle: true }]
  for (const check of checksOf(question)) {
    const stretches = check.values.map((value) => valueStretch(check.index, value))
    conditions.push({ stretches, check, isSingle: stretches.length === 1 })
  }
  for (const range of rangesOf(question)) {
    const stretches = stretchesOf(range).map((bounds) => rangeStretch(range.field, bounds))
    conditions.push({ stretches, isSingle: true })
  }
  for (const group of wordGroupsOf(question)) {
    const stretches = group.map((word) => valueStretch('w', textStart(word)))
    conditions.push({ stretches, isSingle: false })
  }
  const counts = await countStretches(
    place,
    conditions.flatMap(({ stretches }) => stretches),
  )
  const all = counts[0]
  let next = 0
  const counted = conditions
    .map((condition) => {
      const own = counts.slice(next, (next += condition.stretches.length))
      // Values without rows need not be walked.
      const stretches = condition.stretches.filter((_, i) => own[i] > 0)
      return { ...condition, stretches, count: own.reduce((sum, one) => sum + one, 0) }
    })
    // A condition that every row meets is none.
    .filter(({ count, isSingle }, i) => i === 0 || count < all || !isSingle)
  const least = counted.reduce((least, one) => (one.count < least.count ? one : least))
  const others = counted.filter((one) => one !== least && one !== counted[0])
  const checks = counted.flatMap(({ check, count }) => (check === undefined ? [] : [{ check, count }]))
  checks.sort((a, b) => a.count - b.count)
  const ordered = checks.map(({ check }) => check)
  return {
    stretches: least.stretches,
    count: least.count,
    all,
    isExact: least.isSingle && others.length === 0,
    checks: ordered,
    others: ordered.filter((check) => check !== least.check),
  }
}

/** Whether all further conditions are looked up in indexes, so that no row is read to count the matches. */
export const countsByIndex = (question: Find, plan: Plan): boolean =>
  rangesOf(question).length === 0 && wordGroupsOf(question).length === 0 && plan.others.every(isLookedUp)
