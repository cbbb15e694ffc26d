import { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonSchema } from '../../../kernel/json.ts'
import { fieldError, OWN_SCHEMAS, whenNeeded } from '../../../kit/http/validate.ts'

/** Metres, and metres per second, that fit a column of hundredths in 32 bits. */
export const HUNDREDTHS_MAX = 21_474_836
export const ATTRIBUTES_BYTES_MAX = 1024
export const POINTS_MAX = 10_000

export const pointSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['recordedAt', 'lat', 'lng'],
  properties: {
    trackerId: { type: 'string', description: 'Needed, or externalId, when the credential is an ingest key.' },
    // Checked only for unknown names: counting the characters in each point would cost as much as all else.
    externalId: { type: 'string', description: "The fleet's own name of the tracker." },
    recordedAt: { type: ['string', 'number'], description: 'RFC 3339, or milliseconds since the epoch.' },
    lat: { type: 'number', minimum: -90, maximum: 90 },
    lng: { type: 'number', minimum: -180, maximum: 180 },
    accuracy: { type: 'number', minimum: 0, maximum: HUNDREDTHS_MAX, description: 'Metres.' },
    altitude: { type: 'number', minimum: -HUNDREDTHS_MAX, maximum: HUNDREDTHS_MAX, description: 'Metres.' },
    speed: { type: 'number', minimum: -HUNDREDTHS_MAX, maximum: HUNDREDTHS_MAX, description: 'Metres a second.' },
    heading: { type: 'number', minimum: 0, maximum: 360, description: 'Degrees clockwise from north.' },
    battery: { type: 'number', minimum: 0, maximum: 1 },
    trip: { enum: ['start', 'finish'] },
    attributes: {
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      description: `At most ${ATTRIBUTES_BYTES_MAX} bytes of JSON.`,
    },
  },
}

export const pointExample = {
  recordedAt: '2026-05-04T09:30:00.000Z',
  lat: 52.2296756,
  lng: 21.0122287,
  accuracy: 4.5,
  speed: 11.2,
  heading: 270,
}

/** A point in a frame after validation by the schema. */
export interface PointInput {
  trackerId?: string
  externalId?: string
  recordedAt: string | number
  lat: number
  lng: number
  accuracy?: number
  altitude?: number
  speed?: number
  heading?: number
  battery?: number
  trip?: 'start' | 'finish'
  attributes?: { [name: string]: string | number | boolean | null }
}

const ajv = new Ajv2020(OWN_SCHEMAS)

/** Whether all points of a list are valid, in one pass. */
export const arePoints = ajv.compile<PointInput[]>({ type: 'array', items: pointSchema })

const errorsOf = whenNeeded(ajv, pointSchema)

/** Description of one point's fault; undefined if there is none. */
export const faultOf = (point: unknown): string | undefined => {
  const errors = errorsOf(point)
  if (errors === undefined) return undefined
  if (errors[0] === undefined) return 'is not a point'
  const { path, message } = fieldError(errors[0])
  return `${path || 'the point'} ${message}`
}
