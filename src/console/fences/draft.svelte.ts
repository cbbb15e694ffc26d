// A geofence being drawn or changed: its shape, its draggable handles, and the request body.
import type { Feature } from 'geojson'
import { newId } from '../api/create.ts'
import { type Fence, fenceFeature, type FenceShape } from '../map/fence-features.ts'
import { destination, distance, type Position } from '../map/geometry.ts'
import type { Pointing } from '../map/map-view.ts'
import { typedPlace } from '../map/typed-place.ts'

export type Kind = 'polygon' | 'circle' | 'corridor'

const RADIUS_METERS = 300
const WIDTH_METERS = 60
const CORNERS_MIN = { polygon: 3, corridor: 2, circle: 0 }
const DIGITS = 7

interface Handle {
  kind: 'corner' | 'middle' | 'center' | 'radius'
  ring: number
  index: number
}

export class Draft {
  kind: Kind
  /** Id of the changed fence; undefined for a new one. */
  id: string | undefined
  version: number | undefined
  /** Id under which a new one is stored. */
  readonly newId = newId()
  name = $state('')
  geofenceGroupId = $state('')
  isActive = $state(true)
  center = $state<Position>()
  radius = $state(RADIUS_METERS)
  width = $state(WIDTH_METERS)
  /** Open rings of a polygon, its holes after the first; the line of a corridor. */
  rings = $state.raw<Position[][]>([[]])
  /** Clicks on the map add corners. */
  isAdding = $state(true)
  /** What was typed last and is no place: the shape is without it. */
  wrong = $state<string>()
  #dragged: Handle | undefined
  /** The click that ends a drag adds no corner. */
  #isOfHandle = false
  #begun: string

  constructor(kind: Kind) {
    this.kind = kind
    this.#begun = this.#content()
  }

  /** Undefined for shapes that cannot be edited here: several polygons in one geofence. */
  static of(fence: Fence): Draft | undefined {
    const { geometry, center } = fence
    if (geometry?.type === 'MultiPolygon') return undefined
    const draft = new Draft(center !== undefined ? 'circle' : geometry?.type === 'LineString' ? 'corridor' : 'polygon')
    draft.id = fence._id
    draft.version = fence.version
    draft.name = fence.name
    draft.geofenceGroupId = fence.geofenceGroupId
    draft.isActive = fence.isActive
    draft.isAdding = false
    if (center !== undefined) draft.center = [center.lng, center.lat]
    draft.radius = fence.radius ?? RADIUS_METERS
    draft.width = fence.width ?? WIDTH_METERS
    if (geometry?.type === 'LineString') draft.rings = [geometry.coordinates as Position[]]
    if (geometry?.type === 'Polygon')
      draft.rings = (geometry.coordinates as Position[][]).map((ring) => ring.slice(0, -1))
    draft.#begun = draft.#content()
    return draft
  }

  /** Whether something would be lost with it. */
  get isTouched(): boolean {
    return this.#content() !== this.#begun
  }

  get isComplete(): boolean {
    if (this.kind === 'circle') return this.center !== undefined && this.radius > 0
    return this.rings.every((ring) => ring.length >= CORNERS_MIN[this.kind])
  }

  /** The shape in the form of the API. */
  get shape(): FenceShape {
    if (this.kind === 'circle') {
      const [lng, lat] = this.center ?? [0, 0]
      return { center: { lat, lng }, radius: this.radius }
    }
    if (this.kind === 'corridor')
      return { geometry: { type: 'LineString', coordinates: this.rings[0] }, width: this.width }
    return polygonOf(this.rings)
  }

  features(): { shape: Feature[]; handles: Feature[] } {
    const drawn = this.#preview()
    const found = drawn === undefined ? undefined : fenceFeature(drawn)
    return { shape: found === undefined ? [] : [found.feature], handles: this.#handles() }
  }

  /** Returns whether the map must not handle the pointer itself. */
  point({ type, position, handle }: Pointing): boolean {
    const at = position.map((degrees) => Number(degrees.toFixed(DIGITS))) as Position
    if (type === 'down') {
      this.#isOfHandle = handle !== undefined
      if (handle === undefined) return false
      this.#dragged = handle as unknown as Handle
      if (this.#dragged.kind === 'middle') this.#insert(this.#dragged, at)
      return true
    }
    if (type === 'move' && this.#dragged !== undefined) {
      this.#drag(this.#dragged, at)
      return true
    }
    if (type === 'up') {
      const was = this.#dragged !== undefined
      this.#dragged = undefined
      return was
    }
    if (type !== 'click') return false
    if (!this.#isOfHandle && handle === undefined && this.isAdding) this.add(at)
    return true
  }

  add(at: Position): void {
    if (this.kind === 'circle') {
      this.#center(at)
      this.isAdding = false
    } else this.#put(this.rings.length - 1, [...this.rings.at(-1)!, at])
  }

  /** The following corners are those of a hole. */
  beginHole(): void {
    this.rings = [...this.rings, []]
    this.isAdding = true
  }

  removeLast(): void {
    const at = this.rings.length - 1
    const ring = this.rings[at]!.slice(0, -1)
    if (ring.length === 0 && at > 0) this.rings = this.rings.slice(0, -1)
    else this.#put(at, ring)
  }

  /** Corners as lines of latitude and longitude; rings are separated by an empty line. */
  get text(): string {
    return this.rings.map((ring) => ring.map(([lng, lat]) => `${lat}, ${lng}`).join('\n')).join('\n\n')
  }

  setCenter(text: string): void {
    const place = typedPlace(text)
    if (place === undefined) this.wrong = text
    else this.add(place)
  }

  /** Nothing changes where a line is no corner. */
  setText(text: string): void {
    const rings: Position[][] = []
    for (const block of text.trim().split(/\n\s*\n/)) {
      const ring: Position[] = []
      for (const line of block.split('\n').filter((one) => one.trim() !== '')) {
        const corner = typedPlace(line)
        if (corner === undefined) {
          this.wrong = line
          return
        }
        ring.push(corner)
      }
      rings.push(ring)
    }
    this.rings = this.kind === 'corridor' ? rings.slice(0, 1) : rings
    this.wrong = undefined
  }

  #content(): string {
    const { name, isActive, center, radius, width, rings } = this
    return JSON.stringify({ name, isActive, center, radius, width, rings })
  }

  #preview(): FenceShape | undefined {
    if (this.isComplete) return this.shape
    const [ring = [], ...holes] = this.rings
    if (holes.length > 0 && ring.length >= CORNERS_MIN[this.kind])
      return polygonOf([ring, ...holes.filter((hole) => hole.length >= CORNERS_MIN[this.kind])])
    if (this.kind === 'circle' || ring.length < 2) return undefined
    return { geometry: { type: 'LineString', coordinates: ring }, width: this.kind === 'corridor' ? this.width : 0 }
  }

  #handles(): Feature[] {
    const feature = (handle: Handle, coordinates: Position): Feature => ({
      type: 'Feature',
      properties: handle,
      geometry: { type: 'Point', coordinates },
    })
    if (this.kind === 'circle') {
      if (this.center === undefined) return []
      return [
        feature({ kind: 'center', ring: 0, index: 0 }, this.center),
        feature({ kind: 'radius', ring: 0, index: 0 }, destination(this.center, 90, this.radius)),
      ]
    }
    const found: Feature[] = []
    this.rings.forEach((corners, ring) => {
      const last = this.kind === 'polygon' && corners.length > 2 ? corners.length : corners.length - 1
      for (let i = 0; i < last; i++)
        found.push(
          feature({ kind: 'middle', ring, index: i + 1 }, middle(corners[i]!, corners[(i + 1) % corners.length]!)),
        )
      corners.forEach((corner, index) => void found.push(feature({ kind: 'corner', ring, index }, corner)))
    })
    return found
  }

  #insert(handle: Handle, at: Position): void {
    this.#put(handle.ring, this.rings[handle.ring]!.toSpliced(handle.index, 0, at))
    this.#dragged = { ...handle, kind: 'corner' }
  }

  #drag({ kind, ring, index }: Handle, at: Position): void {
    if (kind === 'center') this.#center(at)
    else if (kind === 'radius') this.radius = Math.max(1, Math.round(distance(this.center!, at)))
    else this.#put(ring, this.rings[ring]!.with(index, at))
  }

  #center(at: Position): void {
    this.center = at
    this.wrong = undefined
  }

  #put(at: number, ring: Position[]): void {
    this.rings = this.rings.with(at, ring)
  }
}

const polygonOf = (rings: readonly Position[][]): FenceShape => ({
  geometry: { type: 'Polygon', coordinates: rings.map((ring) => [...ring, ring[0]!]) },
})

const middle = ([lng1, lat1]: Position, [lng2, lat2]: Position): Position => [(lng1 + lng2) / 2, (lat1 + lat2) / 2]
