import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../kernel/json.ts'
import { valueIn } from '../data/views.ts'
import type { TaskValues } from './views.ts'

/** Time of writing components: at the device, or now if none was sent. ms since the epoch. */
export interface Filling {
  now: number
  at?: number
}

type Filled = Pick<TaskValues, 'components' | 'filledAtMs'>

/** Sent values except those written later. Values without a time always count, even against a clock ahead. */
export const latestOf = ({ filledAtMs = {} }: Filled, sent: JsonObject, { at }: Filling): JsonObject =>
  at === undefined
    ? sent
    : Object.fromEntries(Object.entries(sent).filter(([name]) => at >= (timeOf(filledAtMs, name) ?? at)))

/** Records when the components of a task were written. `said`: those whose time counts even if unchanged. */
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

/** Time at which the components of a change were written; undefined if it wrote none. */
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
