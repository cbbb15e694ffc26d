// What a trial of a shape has found, summed up.
import type { Json } from '../api/client.ts'

export interface Tried {
  entries: number
  leaves: number
  trackers: number
  /** Transitions that the group's debounce suppresses. */
  removed: number
  /** Trackers that were inside, those with most visits first. */
  rows: TriedRow[]
  from: number
  to: number
  last: { trackerId: string; type: 'entry' | 'leave'; at: number }[]
  /** Too many points for an immediate answer: this is shown elsewhere. */
  isTooMuch: boolean
}

export interface TriedRow {
  trackerId: string
  visits: { from: number; to: number }[]
  /** Times of crossings that the group's debounce suppresses. */
  removed: number[]
}

const SHOWN = 20

export const NOTHING: Tried = {
  entries: 0,
  leaves: 0,
  trackers: 0,
  removed: 0,
  rows: [],
  from: 0,
  to: 0,
  last: [],
  isTooMuch: false,
}

export interface Crossing {
  trackerId: string
  type: 'entry' | 'leave'
  at: number
}

export const crossingOf = ({ trackerId, type, at }: Json): Crossing => ({ trackerId, type, at: Date.parse(at) })

/** Summary of the crossings; `raw` are those without debounce. */
export const triedOf = (
  settled: readonly Crossing[],
  raw: readonly Crossing[],
  span: { from: number; to: number },
): Tried => {
  const rows = rowsOf(settled, raw, span.to)
  return {
    entries: settled.filter(({ type }) => type === 'entry').length,
    leaves: settled.filter(({ type }) => type === 'leave').length,
    trackers: new Set(settled.map(({ trackerId }) => trackerId)).size,
    removed: Math.max(0, raw.length - settled.length),
    rows,
    ...span,
    last: settled.toSorted((a, b) => b.at - a.at).slice(0, SHOWN),
    isTooMuch: false,
  }
}

const rowsOf = (settled: readonly Crossing[], raw: readonly Crossing[], end: number): TriedRow[] => {
  const ofTracker = byTracker(raw)
  const kept = byTracker(settled)
  const rows = [...ofTracker].map(([trackerId, crossings]) => {
    const own = kept.get(trackerId) ?? []
    return { trackerId, visits: visitsOf(own, end), removed: removedOf(own, crossings) }
  })
  return rows.sort((a, b) => b.visits.length - a.visits.length || b.removed.length - a.removed.length)
}

const byTracker = (crossings: readonly Crossing[]): Map<string, Crossing[]> => {
  const found = new Map<string, Crossing[]>()
  for (const crossing of crossings.toSorted((a, b) => a.at - b.at)) {
    const own = found.get(crossing.trackerId)
    if (own === undefined) found.set(crossing.trackerId, [crossing])
    else own.push(crossing)
  }
  return found
}

const visitsOf = (crossings: readonly Crossing[], end: number): { from: number; to: number }[] =>
  crossings.flatMap(({ type, at }, i) => (type === 'entry' ? [{ from: at, to: crossings[i + 1]?.at ?? end }] : []))

/** Raw crossings without a counted one: each counted one stands for the last of its kind at or before its time. */
const removedOf = (settled: readonly Crossing[], raw: readonly Crossing[]): number[] => {
  const left = [...raw]
  for (const { type, at } of settled) {
    const found = left.findLastIndex((one) => one.type === type && one.at <= at)
    if (found >= 0) left.splice(found, 1)
  }
  return left.map(({ at }) => at)
}
