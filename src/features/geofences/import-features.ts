import { keptShape, positionsOf, type ShapeInput } from '../../geo/shape.ts'
import { validateShape } from '../../geo/validate-shape.ts'
import { Failure } from '../../kernel/errors.ts'
import { endlessAt, isObject, type JsonObject, TOO_LARGE } from '../../kernel/json.ts'
import { charsOf, keptText, textFault } from '../../kernel/text.ts'
import type { GeofenceCreated } from './events.ts'
import { FeatureScanner, ScanError, type Span } from './feature-scanner.ts'
import { assertAttributes, assertShallow, NAME_MAX, shapeOf } from './geofence-body.ts'

export interface ImportRequest {
  /** A FeatureCollection as UTF-8 JSON; shared, so that it survives the end of the worker. */
  bytes: SharedArrayBuffer
  nameProperty: string
  organizationId: string
  geofenceGroupId: string
  at: number
  /** Features before this one are done. */
  from: number
  /** Features whose check took too long. */
  skip: readonly number[]
  /** The worker writes the index of its current feature here. */
  progress: SharedArrayBuffer
}

export interface RejectedFeature {
  index: number
  code: 'invalid' | 'quota'
  message: string
}

export interface CheckedFeature {
  index: number
  geofenceId: string
  positions: number
  /** `geofenceCreated`, encoded. */
  data: Uint8Array
}

export interface ImportStep {
  created: CheckedFeature[]
  rejected: RejectedFeature[]
  /** The first remaining feature; the number of all if none remains. */
  next: number
}

const GEOMETRY_MEMBERS = ['type', 'coordinates', 'bbox']
/** Size of events in bytes that ends a step. */
const STEP_BYTES = 512 * 1024
/** Size of one feature in the file: room for the most positions of a geofence, in any formatting. */
const FEATURE_BYTES_MAX = 8 * 1024 * 1024

/** A file that is being imported, in the worker. */
export class OpenImport {
  readonly total: number
  private readonly bytes: Uint8Array
  private readonly features: Iterator<Span>
  private readonly request: ImportRequest
  private readonly progress: Int32Array
  private at: number

  private constructor(request: ImportRequest, scanner: FeatureScanner, list: Span, total: number) {
    this.bytes = new Uint8Array(request.bytes)
    this.features = scanner.items(list)
    this.total = total
    this.request = request
    this.progress = new Int32Array(request.progress)
    this.at = request.from
    for (let i = 0; i < this.at; i++) this.features.next()
  }

  /** Opens the file, or returns its fault as a whole. */
  static of(request: ImportRequest): OpenImport | string {
    const bytes = new Uint8Array(request.bytes)
    const scanner = new FeatureScanner(bytes)
    let [type, list, total]: [unknown, Span | undefined, number] = [undefined, undefined, 0]
    try {
      for (const { key, value } of scanner.members()) {
        const name = parsed(bytes, key)
        if (name === 'type') type = parsed(bytes, value)
        if (name !== 'features') continue
        list = scanner.isList(value) ? value : undefined
        total = list === undefined ? 0 : countOf(scanner.items(list))
      }
    } catch (error) {
      if (!(error instanceof ScanError)) throw error
      return `The file is not JSON in UTF-8: ${error.message}`
    }
    if (type !== 'FeatureCollection') return 'The file must be a GeoJSON FeatureCollection.'
    if (list === undefined) return 'The FeatureCollection must have an array of features.'
    return new OpenImport(request, scanner, list, total)
  }

  /** Checks some more features; `ids` has one id for each, whether good or not, and bounds the step. */
  next(ids: readonly string[]): ImportStep {
    const step: ImportStep = { created: [], rejected: [], next: this.at }
    let bytes = 0
    for (let seen = 0; this.at < this.total && seen < ids.length && bytes < STEP_BYTES; seen++) {
      const index = this.at++
      Atomics.store(this.progress, 0, index)
      const span = this.features.next().value as Span
      const checked = this.request.skip.includes(index) ? 'Checking it takes too long.' : this.check(span)
      if (typeof checked === 'string') step.rejected.push({ index, code: 'invalid', message: checked })
      else {
        step.created.push({ index, geofenceId: ids[seen], ...checked })
        bytes += checked.data.byteLength
      }
    }
    return { ...step, next: this.at }
  }

  private check(span: Span): Checked | string {
    try {
      return this.created(parsed(this.bytes, span))
    } catch (error) {
      if (error instanceof Failure || error instanceof ScanError) return error.message
      throw error
    }
  }

  private created(feature: unknown): Checked | string {
    if (!isObject(feature) || feature.type !== 'Feature') return 'must be a Feature'
    assertShallow('', feature)
    const properties = isObject(feature.properties) ? feature.properties : {}
    const { nameProperty, organizationId, geofenceGroupId, at } = this.request
    const name = properties[nameProperty]
    if ((typeof name !== 'string' && typeof name !== 'number') || `${name}`.trim() === '')
      return `/properties/${nameProperty} is required: it names the geofence`
    const kept = keptText(`${name}`.trim(), 'newName')
    if (charsOf(kept) > NAME_MAX) return `/properties/${nameProperty} must not be over ${NAME_MAX} characters`
    const fault = textFault(`${name}`, 'newName')
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
    const endless = endlessAt(attributes)
    if (endless !== undefined) return `/properties${endless} ${TOO_LARGE}`
    assertAttributes(attributes)
    const data: GeofenceCreated = {
      organizationId,
      at,
      name: kept,
      geofenceGroupId,
      isActive: true,
      shape: keptShape(flat(shape)),
    }
    if (Object.keys(attributes).length > 0) data.attributes = attributes
    return { data: new TextEncoder().encode(JSON.stringify(data)), positions: positionsOf(data.shape) }
  }
}

type Checked = Pick<CheckedFeature, 'data' | 'positions'>

/** Parsed value of the span. @throws ScanError if it is no JSON, or too large to be read at once */
const parsed = (bytes: Uint8Array, { from, to }: Span): unknown => {
  if (to - from > FEATURE_BYTES_MAX) throw new ScanError(`is larger than ${FEATURE_BYTES_MAX} bytes`)
  try {
    // Copied: decoders do not accept shared memory.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.slice(from, to)))
  } catch (error) {
    throw new ScanError(`is not JSON in UTF-8: ${(error as Error).message.slice(0, 200)}`)
  }
}

const countOf = (items: Iterable<unknown>): number => {
  let count = 0
  for (const _item of items) count++
  return count
}

/** Shape of a feature, and the property with its size. */
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

/** Removes the third dimension: geofences have none. */
export const flat = (shape: ShapeInput): ShapeInput => {
  const positions = (list: number[][]): number[][] => list.map(([lng, lat]) => [lng, lat])
  if ('center' in shape) return shape
  if ('geometry' in shape)
    return { geometry: { type: 'LineString', coordinates: positions(shape.geometry.coordinates) }, width: shape.width }
  if (shape.type === 'Polygon') return { type: 'Polygon', coordinates: shape.coordinates.map(positions) }
  return { type: 'MultiPolygon', coordinates: shape.coordinates.map((rings) => rings.map(positions)) }
}
