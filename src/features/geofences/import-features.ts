import { keptShape, type ShapeInput } from '../../geo/shape.ts'
import { validateShape } from '../../geo/validate-shape.ts'
import { Failure } from '../../kernel/errors.ts'
import { isObject, type JsonObject } from '../../kernel/json.ts'
import { keptText, textFault } from '../../kernel/text.ts'
import type { GeofenceCreated } from './events.ts'
import { assertAttributes, assertShallow, NAME_MAX, shapeOf } from './geofence-body.ts'

export interface ImportRequest {
  /** A FeatureCollection as UTF-8 JSON; shared, so that it is still there when the worker had to be ended. */
  bytes: SharedArrayBuffer
  nameProperty: string
  organizationId: string
  geofenceGroupId: string
  at: number
  /** Features before this one are done. */
  from: number
  /** Features whose check took too long. */
  skip: readonly number[]
  /** The worker writes here which feature it is at. */
  progress: SharedArrayBuffer
}

export interface RejectedFeature {
  index: number
  code: 'invalid'
  message: string
}

export interface ImportStep {
  /** `geofenceCreated` of each good feature, encoded, with its id. */
  created: { geofenceId: string; data: Uint8Array }[]
  rejected: RejectedFeature[]
  /** The first feature that is left; the number of all when none is. */
  next: number
}

const GEOMETRY_MEMBERS = ['type', 'coordinates', 'bbox']
/** A step ends when its events have so many bytes. */
const STEP_BYTES = 512 * 1024

/** A file that is being imported, in the worker. */
export class OpenImport {
  readonly total: number
  private readonly features: unknown[]
  private readonly request: ImportRequest
  private readonly progress: Int32Array
  private at: number

  private constructor(features: unknown[], request: ImportRequest) {
    this.features = features
    this.total = features.length
    this.request = request
    this.progress = new Int32Array(request.progress)
    this.at = request.from
  }

  /** Answers what is wrong with the file as a whole, if something is. */
  static of(request: ImportRequest): OpenImport | string {
    let collection: unknown
    try {
      // Copied: a decoder takes no shared memory.
      collection = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(request.bytes).slice()))
    } catch (error) {
      return `The file is not JSON in UTF-8: ${(error as Error).message.slice(0, 200)}`
    }
    if (!isObject(collection) || collection.type !== 'FeatureCollection')
      return 'The file must be a GeoJSON FeatureCollection.'
    if (!Array.isArray(collection.features)) return 'The FeatureCollection must have an array of features.'
    return new OpenImport(collection.features, request)
  }

  /** Checks some more features; `ids` are theirs, one for each, whether good or not, and bound the step. */
  next(ids: readonly string[]): ImportStep {
    const step: ImportStep = { created: [], rejected: [], next: this.at }
    let bytes = 0
    for (let seen = 0; this.at < this.total && seen < ids.length && bytes < STEP_BYTES; seen++) {
      const index = this.at++
      Atomics.store(this.progress, 0, index)
      const checked = this.request.skip.includes(index)
        ? 'Checking it takes too long.'
        : this.check(this.features[index])
      this.features[index] = undefined
      if (typeof checked === 'string') step.rejected.push({ index, code: 'invalid', message: checked })
      else {
        step.created.push({ geofenceId: ids[seen], data: checked })
        bytes += checked.byteLength
      }
    }
    return { ...step, next: this.at }
  }

  private check(feature: unknown): Uint8Array | string {
    try {
      return this.created(feature)
    } catch (error) {
      if (error instanceof Failure) return error.message
      throw error
    }
  }

  private created(feature: unknown): Uint8Array | string {
    if (!isObject(feature) || feature.type !== 'Feature') return 'must be a Feature'
    assertShallow('', feature)
    const properties = isObject(feature.properties) ? feature.properties : {}
    const { nameProperty, organizationId, geofenceGroupId, at } = this.request
    const name = properties[nameProperty]
    if ((typeof name !== 'string' && typeof name !== 'number') || `${name}`.trim() === '')
      return `/properties/${nameProperty} is required: it names the geofence`
    if (`${name}`.length > NAME_MAX) return `/properties/${nameProperty} must not be over ${NAME_MAX} characters`
    const fault = textFault(`${name}`, 'name')
    if (fault !== undefined) return `/properties/${nameProperty} ${fault}`
    if (!isObject(feature.geometry)) return '/geometry is required'
    const { shape, used } = shapeOfFeature(feature.geometry as JsonObject, properties as JsonObject)
    const error = validateShape(shape)
    if (error !== undefined) return `${'type' in shape ? '/geometry' : ''}${error.path} ${error.message}`.trim()
    const foreign = Object.keys(feature.geometry).find((member) => !GEOMETRY_MEMBERS.includes(member))
    if (foreign !== undefined) return `/geometry/${foreign} is not a known field`
    const attributes = Object.fromEntries(
      Object.entries(properties).filter(([key]) => key !== nameProperty && key !== used),
    ) as JsonObject
    assertAttributes(attributes)
    const data: GeofenceCreated = {
      organizationId,
      at,
      name: keptText(`${name}`.trim(), 'name'),
      geofenceGroupId,
      isActive: true,
      shape: keptShape(flat(shape)),
    }
    if (Object.keys(attributes).length > 0) data.attributes = attributes
    return new TextEncoder().encode(JSON.stringify(data))
  }
}

/** The shape of a feature, and which property said its size. */
const shapeOfFeature = (geometry: JsonObject, properties: JsonObject): { shape: ShapeInput; used?: string } => {
  if (geometry.type === 'Point') {
    const [lng, lat] = Array.isArray(geometry.coordinates) ? geometry.coordinates : []
    if (properties.radius === undefined)
      throw new Failure('invalid', { message: '/properties/radius is required for a Point' })
    return { shape: { center: { lat, lng }, radius: properties.radius } as unknown as ShapeInput, used: 'radius' }
  }
  if (geometry.type === 'LineString') {
    if (properties.width === undefined)
      throw new Failure('invalid', { message: '/properties/width is required for a LineString' })
    return { shape: shapeOf({ geometry, width: properties.width }), used: 'width' }
  }
  return { shape: shapeOf({ geometry }) }
}

/** Without a third dimension: geofences have none. */
export const flat = (shape: ShapeInput): ShapeInput => {
  const positions = (list: number[][]): number[][] => list.map(([lng, lat]) => [lng, lat])
  if ('center' in shape) return shape
  if ('geometry' in shape)
    return { geometry: { type: 'LineString', coordinates: positions(shape.geometry.coordinates) }, width: shape.width }
  if (shape.type === 'Polygon') return { type: 'Polygon', coordinates: shape.coordinates.map(positions) }
  return { type: 'MultiPolygon', coordinates: shape.coordinates.map((rings) => rings.map(positions)) }
}
