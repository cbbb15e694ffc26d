// Tries a shape against last week's points before it is used: creates an inactive geofence, back-tests it, deletes it.
import { remove } from '../api/change.ts'
import { type Json, post, serverNow } from '../api/client.ts'
import { create, newId } from '../api/create.ts'
import type { FenceShape } from '../map/fence-features.ts'
import { type Rules, triedRules } from './rules.ts'

const WEEK_MS = 7 * 86_400_000
const AGAIN_MS = 5_000
/** Pauses between attempts to delete are each twice as long as the last, up to this. */
const AGAIN_MS_MAX = 300_000

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

export const tryOut = async (
  name: string,
  geofenceGroupId: string,
  shape: FenceShape,
  rules: Rules,
): Promise<Tried> => {
  const now = serverNow()
  const span = { from: now - WEEK_MS, to: now }
  const range = { from: new Date(span.from).toISOString(), to: new Date(span.to).toISOString() }
  // Chosen here: it can be deleted although the answer to its creation was lost.
  const id = newId()
  const path = `/geofence/${id}`
  try {
    await create('/geofence', { _id: id, name, geofenceGroupId, ...shape, isActive: false })
    const settled = await post(`${path}/backtest`, { ...range, ...triedRules(rules) })
    if (!Array.isArray(settled.data)) return { ...NOTHING, ...span, isTooMuch: true }
    const raw = await post(`${path}/backtest`, {
      ...range,
      ...triedRules(rules),
      debounce: { fixes: 1 },
    })
    return triedOf(
      settled.data.map(crossingOf),
      (Array.isArray(raw.data) ? raw.data : settled.data).map(crossingOf),
      span,
    )
  } finally {
    void clear(path, AGAIN_MS)
  }
}

/** Deletes it, also where its answer or the request was lost. */
const clear = (path: string, againMs: number): Promise<void> =>
  remove(path).catch(() => {
    setTimeout(() => void clear(path, Math.min(2 * againMs, AGAIN_MS_MAX)), againMs)
  })

const NOTHING: Tried = {
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

const crossingOf = ({ trackerId, type, at }: Json): Crossing => ({ trackerId, type, at: Date.parse(at) })

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
