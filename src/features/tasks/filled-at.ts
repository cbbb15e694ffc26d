import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../kernel/json.ts'
import { valueIn } from '../data/views.ts'
import type { TaskValues } from './views.ts'

/** When components were written: at the device, or now where nobody said it. ms since the epoch. */
export interface Filling {
  now: number
  at?: number
}

type Filled = Pick<TaskValues, 'components' | 'filledAtMs'>

/** What was sent without what somebody wrote later. What nobody said the time of counts, whatever a clock that is ahead said. */
export const latestOf = ({ filledAtMs = {} }: Filled, sent: JsonObject, { at }: Filling): JsonObject =>
  at === undefined
    ? sent
    : Object.fromEntries(Object.entries(sent).filter(([name]) => at >= (timeOf(filledAtMs, name) ?? at)))

/** A task that remembers when its components were written. `said` are those whose time counts though their value is the same. */
export const withFillingTimes = <T extends Filled>(
  before: Filled,
  next: T,
  { now, at }: Filling,
  said: readonly string[] = [],
): T => {
  const written = changedIn(before.components, next.components)
  const names = at === undefined ? written : [...new Set([...written, ...said])]
  if (names.length === 0) return next
  const times = before.filledAtMs ?? {}
  const timeFor = (name: string): number => {
    const last = timeOf(times, name)
    if (at !== undefined) return Math.max(at, last ?? at)
    return last === undefined ? now : Math.max(now, last + 1)
  }
  return { ...next, filledAtMs: { ...times, ...Object.fromEntries(names.map((name) => [name, timeFor(name)])) } }
}

/** When the components were written that a change wrote; undefined where it wrote none. */
export const filledAt = (before: Filled, after: Filled): number | undefined => {
  const { filledAtMs: times = {} } = after
  const changed = Object.keys(times).filter((name) => times[name] !== timeOf(before.filledAtMs ?? {}, name))
  return changed.length === 0 ? undefined : Math.max(...changed.map((name) => times[name]))
}

const changedIn = (before: JsonObject, after: JsonObject): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(valueIn(before, name), valueIn(after, name)),
  )

const timeOf = (times: { [name: string]: number }, name: string): number | undefined =>
  Object.hasOwn(times, name) ? times[name] : undefined
