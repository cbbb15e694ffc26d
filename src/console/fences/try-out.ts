// Tries a shape against the points of last week before it counts: a geofence that is not active, a back-test, and it is gone.
import { type Json, post, remove, serverNow } from '../api/client.ts'
import type { FenceShape } from '../map/fence-features.ts'

const WEEK_MS = 7 * 86_400_000

export interface Tried {
  entries: number
  leaves: number
  trackers: number
  /** Transitions that the group's debounce keeps away. */
  removed: number
  last: { trackerId: string; type: 'entry' | 'leave'; at: number }[]
  /** So many points that the service works on it for a while: it is told elsewhere. */
  isTooMuch: boolean
}

const SHOWN = 20

export const tryOut = async (name: string, geofenceGroupId: string, shape: FenceShape): Promise<Tried> => {
  const { data: fence } = await post('/geofence', { name, geofenceGroupId, ...shape, isActive: false })
  try {
    const to = new Date(serverNow()).toISOString()
    const range = { from: new Date(serverNow() - WEEK_MS).toISOString(), to }
    const settled = await post(`/geofence/${fence._id}/backtest`, range)
    if (!Array.isArray(settled.data)) return { ...NOTHING, isTooMuch: true }
    const raw = await post(`/geofence/${fence._id}/backtest`, { ...range, debounce: { fixes: 1 } })
    return triedOf(settled.data, Array.isArray(raw.data) ? raw.data.length : settled.data.length)
  } finally {
    await remove(`/geofence/${fence._id}`)
  }
}

const NOTHING: Tried = { entries: 0, leaves: 0, trackers: 0, removed: 0, last: [], isTooMuch: false }

const triedOf = (transitions: readonly Json[], raw: number): Tried => ({
  entries: transitions.filter(({ type }) => type === 'entry').length,
  leaves: transitions.filter(({ type }) => type === 'leave').length,
  trackers: new Set(transitions.map(({ trackerId }) => trackerId)).size,
  removed: Math.max(0, raw - transitions.length),
  last: transitions
    .map(({ trackerId, type, at }) => ({ trackerId, type, at: Date.parse(at) }))
    .sort((a, b) => b.at - a.at)
    .slice(0, SHOWN),
  isTooMuch: false,
})
