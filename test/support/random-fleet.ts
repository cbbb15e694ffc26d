import type { ShapeInput } from '../../src/geo/shape.ts'
import { AHEAD, HAS_ACCURACY, type PointBatch } from '../../src/features/locations/events.ts'
import type { GroupRules } from '../../src/features/geofences/events.ts'
import { ORG } from './matcher-world.ts'
import { batchOf, uuidOf, type PlainPoint } from './trace-batches.ts'
import { seeded } from './random.ts'

export interface FenceState {
  geofenceGroupId: string
  isActive: boolean
  shape: ShapeInput
}

export type Step =
  | { kind: 'points'; batch: PointBatch }
  | {
      kind: 'fences'
      at: number
      fences: { geofenceId: string; state: FenceState | null }[]
      groups: { geofenceGroupId: string; rules: GroupRules }[]
    }
  | { kind: 'deletion'; trackerId: string; at: number }

export const GROUPS: { [id: string]: GroupRules } = {
  [uuidOf('plain')]: {},
  [uuidOf('accurate')]: { maxAccuracy: 30 },
  [uuidOf('debounced')]: { debounce: { fixes: 3, seconds: 60 } },
  [uuidOf('both')]: { maxAccuracy: 30, debounce: { fixes: 2 } },
}

const DEGREES = 0.05

/** What happens to a small fleet: walks among fences that change, late points, wrong clocks, deletions. */
export const randomSteps = (seed: number, { steps = 200, trackers = 24, fences = 30 } = {}): Step[] => {
  const random = seeded(seed)
  const groupIds = Object.keys(GROUPS)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]
  const square = (): ShapeInput => {
    const [lng, lat, size] = [random() * DEGREES, random() * DEGREES, 0.001 + random() * 0.012]
    const corner = (x: number, y: number): [number, number] => [
      Math.round((lng + x) * 1e7) / 1e7,
      Math.round((lat + y) * 1e7) / 1e7,
    ]
    return {
      type: 'Polygon',
      coordinates: [[corner(0, 0), corner(size, 0), corner(size, size), corner(0, size), corner(0, 0)]],
    }
  }
  const fence = (): FenceState => ({ geofenceGroupId: pick(groupIds), isActive: random() < 0.9, shape: square() })
  const live = new Map<string, FenceState | null>()
  for (let i = 0; i < fences; i++) live.set(uuidOf(`fence ${i}`), fence())
  const result: Step[] = [
    {
      kind: 'fences',
      at: 1,
      fences: [...live].map(([geofenceId, state]) => ({ geofenceId, state })),
      groups: Object.entries(GROUPS).map(([geofenceGroupId, rules]) => ({ geofenceGroupId, rules })),
    },
  ]
  const fleet = Array.from({ length: trackers }, (_, i) => ({
    trackerId: uuidOf(`tracker ${i}`),
    lng: random() * DEGREES,
    lat: random() * DEGREES,
    heading: random() * 6.3,
  }))
  for (let step = 0, now = 1_000_000; step < steps; step++, now += 20_000) {
    const what = random()
    if (what < 0.08) {
      const edits = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
        const geofenceId = pick([...live.keys()])
        const before = live.get(geofenceId) ?? null
        if (before !== null && random() < 0.2) return { geofenceId, state: null }
        return {
          geofenceId,
          state:
            before === null
              ? null
              : random() < 0.3
                ? { ...before, isActive: !before.isActive }
                : { ...fence(), geofenceGroupId: random() < 0.5 ? before.geofenceGroupId : pick(groupIds) },
        }
      }).filter(
        ({ state, geofenceId }, i, all) =>
          all.findIndex((other) => other.geofenceId === geofenceId) === i &&
          !(state === null && live.get(geofenceId) === null),
      )
      for (const { geofenceId, state } of edits) live.set(geofenceId, state)
      if (edits.length > 0) result.push({ kind: 'fences', at: now, fences: edits, groups: [] })
    } else if (what < 0.1) {
      result.push({ kind: 'deletion', trackerId: pick(fleet).trackerId, at: now })
    } else {
      const points: PlainPoint[] = []
      for (const tracker of fleet) {
        if (random() < 0.3) continue
        for (let k = 0, count = 1 + Math.floor(random() * 3); k < count; k++) {
          tracker.heading += (random() - 0.5) * 1.5
          tracker.lng = Math.min(DEGREES, Math.max(0, tracker.lng + Math.cos(tracker.heading) * 0.0006))
          tracker.lat = Math.min(DEGREES, Math.max(0, tracker.lat + Math.sin(tracker.heading) * 0.0006))
          const isLate = random() < 0.05
          const isAhead = random() < 0.02
          points.push({
            organizationId: ORG,
            trackerId: tracker.trackerId,
            recordedAt: isAhead ? now + 3_600_000 : isLate ? now - 50_000 : now + k * 5_000,
            latE7: Math.round(tracker.lat * 1e7),
            lngE7: Math.round(tracker.lng * 1e7),
            flags: (isAhead ? AHEAD : 0) | HAS_ACCURACY,
            accuracyCm: Math.round(random() * 5_000),
          })
        }
      }
      if (points.length > 0) result.push({ kind: 'points', batch: batchOf(points) })
    }
  }
  return result
}
