import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { DevicePoint, Heard } from '../../src/devices/point.ts'

/** What a source says of a point; null is what must not be there. */
export type ExpectedPoint = { [member in keyof DevicePoint]?: unknown }

export interface Fact {
  note?: string
  body?: unknown
  query?: string
  event?: string
  secret?: string
  hex?: string
  text?: string
  name?: string
  points: ExpectedPoint[]
  /** Where the same form means something else for Traccar Client. */
  traccar?: ExpectedPoint[]
}

/** Facts of one protocol, from public suites and manuals that each file names. */
export const factsOf = (protocol: string): Fact[] => {
  const path = join(import.meta.dirname, '../../../test/devices/facts', `${protocol}.json`)
  return (JSON.parse(readFileSync(path, 'utf8')) as { cases: Fact[] }).cases
}

const DEGREES = 1e-5
const OTHERS = 1e-3

/** Holds what was read against what a source says of the same input. */
export const checkFact = (t: Test, heard: Heard, fact: Pick<Fact, 'points' | 'name'>, what: string): void => {
  t.equal(heard.points.length, fact.points.length, `${what}: points`)
  if (fact.name !== undefined) t.equal(heard.name, fact.name, `${what}: name`)
  for (const [i, expected] of fact.points.entries())
    for (const [member, value] of Object.entries(expected))
      checkMember(t, heard.points[i] as never, member, value, `${what}, point ${i}: ${member}`)
}

const checkMember = (
  t: Test,
  point: { [member: string]: unknown } | undefined,
  member: string,
  value: unknown,
  what: string,
) => {
  const found = point?.[member]
  if (value === null) t.equal(found, undefined, what)
  else if (typeof value === 'object') t.match(found, value, what)
  else if (typeof value === 'number' && typeof found === 'number') {
    const tolerance = member === 'lat' || member === 'lng' ? DEGREES : OTHERS
    t.ok(Math.abs(found - value) <= tolerance, what, { found, wanted: value })
  } else t.equal(found, value, what)
}
