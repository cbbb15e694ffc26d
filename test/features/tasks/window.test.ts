import { test } from 'tap'
import { daysOf, windowConditions } from '../../../src/features/tasks/window.ts'
import { seeded } from '../../support/random.ts'

const HOUR_MS = 3_600_000
const text = (ms: number): string => new Date(ms).toISOString()

test('windows that touch a time have one of its days, and lie as its bounds say unless they are long', async (t) => {
  const random = seeded(11)
  const begin = Date.parse('2026-11-01T00:00:00Z')
  const span = (hoursMax: number): [from: number, to: number] => {
    const from = begin + Math.floor(random() * 1_000) * HOUR_MS - (random() < 0.2 ? 1 : 0)
    return [from, from + Math.floor(random() * hoursMax) * HOUR_MS]
  }
  let [touching, long] = [0, 0]
  for (let round = 0; round < 2_000; round += 1) {
    const [from, to] = span(random() < 0.2 ? 1_000 : 60)
    const [askedFrom, askedTo] = span(200)
    const { where, ranges = [] } = windowConditions({ from: askedFrom, to: askedTo })
    const days = daysOf(text(from), text(to))
    const hasDay = days.some((day) => [where?.days ?? []].flat().includes(day))
    const isTouching = from <= askedTo && to >= askedFrom
    const values: { [field: string]: string } = { windowFrom: text(from), windowTo: text(to) }
    const isWithin = ranges.every(({ field, keptWithin, unless }) => {
      const value = values[field]
      const { from: low = value, to: high = value } = keptWithin ?? {}
      return days.includes(String(unless?.value)) || (value >= String(low) && value <= String(high))
    })
    if (isTouching) touching += 1
    if (days.length === 1 && days[0] === 'long') long += 1
    if ((isTouching && !hasDay) || (hasDay && !isWithin)) t.fail(`${text(from)} to ${text(to)}, ${text(askedFrom)} on`)
  }
  t.ok(touching > 100 && long > 20, `${touching} touch, ${long} are long`)
})
