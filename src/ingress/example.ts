import type { JsonSchema } from '../kernel/json.ts'

const DEPTH_MAX = 8

const FORMATS: { [format: string]: string } = {
  uuid: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  'date-time': '2026-01-01T08:00:00.000Z',
  date: '2026-01-01',
  email: 'ada@example.org',
  uri: 'https://example.org/',
  'time-zone': 'Europe/Berlin',
  language: 'pl',
  currency: 'PLN',
}

/** A value that fits the schema, for documents: its own example or default where it has one. */
export const exampleOf = (schema: JsonSchema | undefined, depth = 0): unknown => {
  if (schema === undefined || depth > DEPTH_MAX) return {}
  if (schema.example !== undefined) return schema.example
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return schema.default
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choice = schema.oneOf ?? schema.anyOf
  if (Array.isArray(choice)) return mergedExample(exampleOf(choice[0], depth + 1), schema, depth)
  if (Array.isArray(schema.allOf)) return Object.assign({}, ...schema.allOf.map((part) => exampleOf(part, depth + 1)))
  return exampleOfType(schema, depth)
}

/** An alternative is added to a schema's own properties. */
const mergedExample = (chosen: unknown, schema: JsonSchema, depth: number): unknown => {
  if (schema.properties === undefined || typeof chosen !== 'object') return chosen
  return { ...(exampleOfType(schema, depth) as object), ...chosen }
}

const exampleOfType = (schema: JsonSchema, depth: number): unknown => {
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? 'object')
  if (type === 'string') return exampleOfText(schema)
  if (type === 'integer' || type === 'number') return exampleOfNumber(schema)
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'array')
    return Array.from({ length: Math.max(1, Number(schema.minItems ?? 1)) }, () =>
      exampleOf(schema.items as JsonSchema, depth + 1),
    )
  const properties = (schema.properties ?? {}) as { [name: string]: JsonSchema }
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, exampleOf(property, depth + 1)]),
  )
}

const exampleOfText = ({ format, minLength, maxLength }: JsonSchema): string => {
  if (typeof format === 'string' && FORMATS[format] !== undefined) return FORMATS[format]
  return 'text'.padEnd(Number(minLength ?? 0), 'x').slice(0, Number(maxLength ?? Number.POSITIVE_INFINITY))
}

const exampleOfNumber = ({ minimum, maximum, exclusiveMinimum }: JsonSchema): number => {
  const least = Number(
    minimum ?? (exclusiveMinimum === undefined ? Number.NEGATIVE_INFINITY : Number(exclusiveMinimum) + 1),
  )
  return Math.min(Math.max(1, least), Number(maximum ?? Number.POSITIVE_INFINITY))
}
