import { frameOf } from './raw-socket.ts'
import { seeded } from '../../test/support/random.ts'

/** Movement of the fleet: within a box, each tracker on a circle of its own, in steps of about 10 m. */
export interface Fleet {
  trackers: number
  west: number
  south: number
  east: number
  north: number
}

const STEP_METERS = 10
const RADIUS_METERS = 300
const STEPS = Math.round((2 * Math.PI * RADIUS_METERS) / STEP_METERS)
/** Points of all frames of a fleet: making them takes some 2 µs each, and memory 130 bytes. */
const TEMPLATE_POINTS_MAX = 4_000_000
const METERS_PER_DEGREE = 111_195

interface Slot {
  /** Place of the 12 characters `HH:MM:SS.mmm` in the frame. */
  timeAt: number
}

/** One frame that is made once and sent again and again with other times. */
export interface FrameTemplate {
  bytes: Buffer
  slots: Slot[]
}

const TIME = '2000-01-01T00:00:00.000Z'

/**
 * Frames of a group of trackers for one lap; a tracker's next point is in the next frame of its group. Trackers of a
 * large fleet go a part of the circle there and back.
 */
export const lapFrames = (
  fleet: Fleet,
  group: readonly number[],
  nameOf: ((tracker: number) => string) | undefined,
  date: string,
): FrameTemplate[] => {
  const steps = Math.max(2, Math.min(STEPS, Math.floor(TEMPLATE_POINTS_MAX / fleet.trackers)))
  const frames = Array.from({ length: steps }, (_, step) => {
    const points = group.map((tracker) => {
      const { lat, lng } = placeOf(fleet, tracker, step)
      const name = nameOf === undefined ? '' : `"externalId":"${nameOf(tracker)}",`
      return `{${name}"recordedAt":"${date}${TIME.slice(10)}","lat":${lat.toFixed(7)},"lng":${lng.toFixed(7)},"speed":${(8 + (tracker % 9)).toFixed(1)},"heading":${((step * 360) / STEPS) | 0}}`
    })
    return templateOf(`{"type":"points","points":[${points.join()}]}`, `${date}T`)
  })
  return steps === STEPS ? frames : [...frames, ...frames.slice(1, -1).reverse()]
}

const templateOf = (text: string, mark: string): FrameTemplate => {
  const bytes = frameOf(Buffer.from(text))
  const slots: Slot[] = []
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) slots.push({ timeAt: at + mark.length })
  return { bytes, slots }
}

/** Writes the time of day (ms since midnight UTC) into every point of the frame. */
export const setTime = ({ bytes, slots }: FrameTemplate, dayMs: number): void => {
  const text = new Date(dayMs).toISOString().slice(11, 23)
  for (const { timeAt } of slots) bytes.write(text, timeAt, 12, 'latin1')
}

/** Place of a tracker after so many steps; a lap later it is there again. */
export const placeOf = (fleet: Fleet, tracker: number, step: number): { lat: number; lng: number } => {
  const random = seeded(tracker + 1)
  const angle = ((step + Math.floor(random() * STEPS)) / STEPS) * 2 * Math.PI
  const lat =
    fleet.south + random() * (fleet.north - fleet.south) + (RADIUS_METERS / METERS_PER_DEGREE) * Math.sin(angle)
  const scale = Math.cos((lat * Math.PI) / 180)
  const lng =
    fleet.west + random() * (fleet.east - fleet.west) + (RADIUS_METERS / METERS_PER_DEGREE / scale) * Math.cos(angle)
  return { lat, lng }
}

export interface FenceFeature {
  type: string
  properties: { name: string }
  geometry: { type: string; coordinates: number[][][] }
}

/** Round-ish polygons with this many vertices, so large that a place lies in `cover` of them on average. */
export const fenceCollection = (
  fleet: Fleet,
  fences: number,
  vertices: number,
  cover: number,
): { type: string; features: FenceFeature[] } => {
  const random = seeded(42)
  const scale = Math.cos((((fleet.south + fleet.north) / 2) * Math.PI) / 180)
  const areaM2 = (fleet.east - fleet.west) * METERS_PER_DEGREE * scale * (fleet.north - fleet.south) * METERS_PER_DEGREE
  const radius = Math.sqrt((areaM2 * cover) / fences / Math.PI)
  const features = Array.from({ length: fences }, (_, i) => {
    const lat = fleet.south + random() * (fleet.north - fleet.south)
    const lng = fleet.west + random() * (fleet.east - fleet.west)
    const ring = Array.from({ length: vertices }, (_, v) => {
      const angle = (v / vertices) * 2 * Math.PI
      const r = radius * (0.85 + random() * 0.3)
      return [
        lng + ((r / METERS_PER_DEGREE) * Math.cos(angle)) / scale,
        lat + (r / METERS_PER_DEGREE) * Math.sin(angle),
      ]
    })
    return {
      type: 'Feature',
      properties: { name: `fence ${i}` },
      geometry: { type: 'Polygon', coordinates: [[...ring, ring[0]]] },
    }
  })
  return { type: 'FeatureCollection', features }
}
