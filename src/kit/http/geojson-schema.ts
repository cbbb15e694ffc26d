import type { JsonSchema } from '../../kernel/json.ts'

/** A FeatureCollection of RFC 7946, as the documentation shows it. */
export const FEATURE_COLLECTION: JsonSchema = {
  title: 'FeatureCollection',
  type: 'object',
  properties: {
    type: { const: 'FeatureCollection' },
    features: {
      type: 'array',
      items: {
        title: 'Feature',
        type: 'object',
        properties: {
          type: { const: 'Feature' },
          properties: { type: ['object', 'null'], additionalProperties: true },
          geometry: { type: ['object', 'null'], additionalProperties: true },
        },
        required: ['type', 'properties', 'geometry'],
      },
    },
  },
  required: ['type', 'features'],
}
