import { isObject, type Json, type JsonObject, type JsonSchema } from './json.ts'
import { keptText, type TextKind } from './text.ts'

/** One field of a body: its JSON Schema, whether it is optional, and its default. */
export interface Field {
  schema: JsonSchema
  /** May be left out. A field with a default always may. */
  optional?: boolean
  /** Value of a field that was left out. */
  default?: Json
  /** Brings an accepted value into its stored form. */
  normalize?: (value: Json) => Json
  /** The value, or each member of the list, is the id of a record of this resource (its `plural`). */
  reference?: string
  /** The record counts as naming it only while another field has one of these values; absent: always. */
  namesWhile?: { readonly [field: string]: readonly string[] }
}

export type Fields = { [name: string]: Field }

/** One line, not trimmed; at least one character and not blank, unless `min` is 0. Kept in Unicode NFC. */
export const text = (bounds: { max: number; min?: number; pattern?: string }): Field => ({
  schema: {
    type: 'string',
    minLength: bounds.min ?? 1,
    maxLength: bounds.max,
    ...(bounds.pattern === undefined ? {} : { pattern: bounds.pattern }),
    'x-text': (bounds.min === 0 ? 'line' : 'name') satisfies TextKind,
  },
})

/**
 * A name of a record: as `text`, without zero width characters. A change of a record accepts the present name all the
 * same (kit/resource/new-names.ts).
 */
export const newName = (bounds: { max: number; min?: number; pattern?: string }): Field => {
  const field = text({ ...bounds, min: bounds.min ?? 1 })
  return { schema: { ...field.schema, 'x-text': 'newName' satisfies TextKind } }
}

/** A description: it may have several lines, and may be empty. */
export const lines = (bounds: { max: number }): Field => ({
  schema: { type: 'string', maxLength: bounds.max, 'x-text': 'lines' satisfies TextKind },
})

/** A name from another system, compared as it was sent: as `text`, but not brought into another form. */
export const key = (bounds: { max: number }): Field => ({
  schema: { type: 'string', minLength: 1, maxLength: bounds.max, 'x-text': 'key' satisfies TextKind },
})

/** A value that is not read as a text: a password, a token. */
export const secret = (bounds: { max: number; min?: number }): Field => ({
  schema: { type: 'string', minLength: bounds.min ?? 1, maxLength: bounds.max },
})

export const email = (): Field => ({ schema: { type: 'string', format: 'email', maxLength: 254 } })

/** A UUID of any version, in any case; kept in lower case. */
export const id = (): Field => ({ schema: { type: 'string', format: 'uuid' }, normalize: lowerCase })

/**
 * The id of a record of another resource, such as `reference('hubs')`; a list of them is `list(reference('users'), …)`.
 * The kit checks that it exists and that the caller sees it, indexes it, and finds the records that name a deleted one.
 */
export const reference = (plural: string, namesWhile?: Field['namesWhile']): Field => ({
  ...id(),
  reference: plural,
  ...(namesWhile !== undefined && { namesWhile }),
})

/** Degrees, WGS 84. */
export const latitude = (): Field => number({ min: -90, max: 90 })

/** Degrees, WGS 84. */
export const longitude = (): Field => number({ min: -180, max: 180 })

interface Bounds {
  min?: number
  max?: number
}

export const number = (bounds: Bounds = {}): Field => ({ schema: { type: 'number', ...limits(bounds) } })

export const integer = (bounds: Bounds = {}): Field => ({ schema: { type: 'integer', ...limits(bounds) } })

export const bool = (): Field => ({ schema: { type: 'boolean' } })

export const oneOf = (...values: readonly string[]): Field => ({ schema: { type: 'string', enum: [...values] } })

export const list = (items: Field, bounds: { max: number; min?: number; unique?: boolean }): Field => ({
  schema: {
    type: 'array',
    items: items.schema,
    maxItems: bounds.max,
    ...(bounds.min === undefined ? {} : { minItems: bounds.min }),
    ...(bounds.unique ? { uniqueItems: true } : {}),
  },
  ...(items.reference && { reference: items.reference }),
  ...(items.normalize && {
    normalize: (values) => {
      const kept = (values as Json[]).map(items.normalize as (value: Json) => Json)
      return bounds.unique ? [...new Set(kept)] : kept
    },
  }),
})

/** An object with these fields and no others. */
export const object = (fields: Fields): Field => ({ schema: objectSchema(fields) })

/** An object whose names the client chooses. */
export const record = (values: Field, bounds: { max: number }): Field => ({
  schema: {
    type: 'object',
    propertyNames: { minLength: 1, maxLength: 200 },
    'x-names': 'name' satisfies TextKind,
    additionalProperties: values.schema,
    maxProperties: bounds.max,
  },
  normalize: (value) =>
    Object.fromEntries(Object.entries(value as JsonObject).map(([name, one]) => [keptText(name, 'name'), one])),
})

/** An object of any content. Its numbers are kept as they are sent, so those beyond all that are kept are refused. */
export const anyObject = (): Field => ({ schema: { type: 'object', 'x-finite': true } })

/** Years from 0 to 9999, ms since the epoch: others have no RFC 3339 form. */
export const TIME_MS_MIN = -62_167_219_200_000
export const TIME_MS_MAX = 253_402_300_799_999

/** A moment: RFC 3339 or epoch milliseconds in; kept and answered as RFC 3339 in UTC with milliseconds. */
export const time = (): Field => ({
  schema: { type: ['string', 'integer'], format: 'date-time', minimum: TIME_MS_MIN, maximum: TIME_MS_MAX },
  normalize: (value) => new Date(value as string | number).toISOString(),
})

/** `HH:MM` of a clock of 24 hours. */
export const TIME_OF_DAY = '^([01][0-9]|2[0-3]):[0-5][0-9]$'

/** A time of the day, `HH:MM`. */
export const timeOfDay = (): Field => ({
  schema: { type: 'string', pattern: TIME_OF_DAY, examples: ['07:30'] },
})

/** A language tag such as `de` or `pt-BR`. */
export const language = (): Field => ({
  schema: { type: 'string', format: 'language', maxLength: 35, examples: ['pl'] },
  normalize: (tag) => new Intl.Locale(tag as string).toString(),
})

/** A currency of ISO 4217, such as `EUR`. */
export const currency = (): Field => ({
  schema: { type: 'string', format: 'currency', minLength: 3, maxLength: 3, examples: ['PLN'] },
})

/** A name of the IANA time zone database, such as `Europe/Warsaw`. */
export const timeZone = (): Field => ({ schema: { type: 'string', format: 'time-zone', maxLength: 64 } })

export const optional = (field: Field): Field => ({ ...field, optional: true })

export const withDefault = (field: Field, value: Json): Field => ({ ...field, default: value })

/** The schema of a whole body: required are the fields that are neither optional nor have a default. */
export const objectSchema = (fields: Fields): JsonSchema => {
  const required = Object.keys(fields).filter((name) => !fields[name].optional && fields[name].default === undefined)
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, shown(field)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  }
}

/** The schema of a merge patch (RFC 7396) for these fields: nothing is required and null takes a field away. */
export const patchSchema = (fields: Fields): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, relaxed(field.schema)])),
  additionalProperties: false,
})

// The default is applied by the kit after validation; here it only documents.
const shown = (field: Field): JsonSchema =>
  field.default === undefined ? field.schema : { ...field.schema, default: field.default }

const lowerCase = (id: Json): Json => (id as string).toLowerCase()

const limits = ({ min, max }: Bounds): JsonSchema => ({
  ...(min === undefined ? {} : { minimum: min }),
  ...(max === undefined ? {} : { maximum: max }),
})

const relaxed = (schema: JsonSchema): JsonSchema => {
  const relaxedSchema: JsonSchema = { ...schema }
  const types = schema.type === undefined ? [] : Array.isArray(schema.type) ? schema.type : [schema.type]
  if (types.length > 0) relaxedSchema.type = [...new Set([...types, 'null'])]
  if (Array.isArray(schema.enum)) relaxedSchema.enum = [...schema.enum, null]
  if (!types.includes('object')) return relaxedSchema
  delete relaxedSchema.required
  if (isObject(schema.properties)) {
    relaxedSchema.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => [name, relaxed(child as JsonSchema)]),
    )
  }
  if (isObject(schema.additionalProperties))
    relaxedSchema.additionalProperties = relaxed(schema.additionalProperties as JsonSchema)
  return relaxedSchema
}
