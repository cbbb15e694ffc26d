import { isDeepStrictEqual } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, valueAt } from '../../kernel/json.ts'
import { linearPattern, patternsFault } from '../../kit/values/pattern.ts'
import { TEXT_CHARS_MAX } from '../../kit/values/value-type.ts'
import type { Rules } from './events.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

const FIELDS_MAX = 50
const KEY_CHARS_MAX = 200
const FIELDS_BYTES_MAX = 16 * 1024
const DEPTH_MAX = 10
/** Counts subschemas of all keys together: the time of compiling is quadratic in them. */
const SCHEMAS_MAX = 300
/** In subschemas: `uniqueItems` compares all pairs of items, 4 ms for a list of 500 options. */
const UNIQUE_COST = 30
const COMPILED_MAX = 1_000

/** Whether the data of an event satisfies an automation's rules. */
export type Matcher = (data: object) => boolean

/** Schema equivalent to `fields`: a constant for each key or, for an object, the JSON Schema of its key. */
export const schemaOf = (fields: { [key: string]: unknown }): Rules['schema'] => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, isObject(value) ? value : { const: value }]),
  ),
  required: Object.keys(fields),
})

/** Fault of these fields as a whole; undefined if there is none. */
export const fieldsFault = (fields: { [key: string]: unknown }): string | undefined => {
  if (Object.keys(fields).length > FIELDS_MAX) return `must have at most ${FIELDS_MAX} keys`
  if (Buffer.byteLength(JSON.stringify(fields)) > FIELDS_BYTES_MAX) return `must be at most ${FIELDS_BYTES_MAX} bytes`
  if (schemasIn(fields) > SCHEMAS_MAX) return `must have at most ${SCHEMAS_MAX} objects in them`
  const patterns = Object.values(fields).flatMap((value) => (isObject(value) ? patternsIn(value, 0) : []))
  return patterns.every((one) => typeof linearPattern(one) === 'function') && patternsFault(patterns, TEXT_CHARS_MAX)
    ? 'must have simpler patterns, or fewer'
    : undefined
}

const schemasIn = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.hasOwn(value, 'uniqueItems') ? UNIQUE_COST : 1
  return Object.values(value).reduce((sum: number, one) => sum + schemasIn(one), own)
}

/** All patterns are tested against the texts of each event. */
const patternsIn = (value: unknown, depth: number): string[] => {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return []
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member, depth + 1),
  )
}

/** Reason why a field is no valid rule; undefined if it is valid. */
export const ruleFault = (key: string, value: unknown): string | undefined =>
  keyFault(key) ?? (isObject(value) ? schemaFault(value) : undefined)

const matchers = new WeakMap<object, Matcher>()

/** Compiles fields without faults; results are cached by the object. */
export const matcherOf = (fields: { [key: string]: unknown }): Matcher => {
  const known = matchers.get(fields)
  if (known !== undefined) return known
  const tests = Object.entries(fields).map(([key, value]) => testOf(key.split('.'), value))
  const matcher: Matcher = (data) => tests.every((test) => test(data))
  matchers.set(fields, matcher)
  return matcher
}

const testOf = (path: readonly string[], value: unknown): Matcher => {
  if (!isObject(value)) return (data) => isDeepStrictEqual(valueAt(data, path), value)
  const validate = compiled(value)
  return (data) => {
    const found = valueAt(data, path)
    return found !== undefined && validate(found)
  }
}

const keyFault = (key: string): string | undefined => {
  if (key.length === 0 || key.length > KEY_CHARS_MAX || key.split('.').includes(''))
    return `must be a path of 1 to ${KEY_CHARS_MAX} characters, its steps separated by dots`
  return key.split('.').includes('__proto__') ? 'must not name __proto__' : undefined
}

const schemaFault = (schema: { [keyword: string]: unknown }): string | undefined => {
  const fault = structureFault(schema, 0)
  if (fault !== undefined) return fault
  try {
    compiled(schema)
    return undefined
  } catch (error) {
    return `must be a JSON Schema (${(error as Error).message.slice(0, 200)})`
  }
}

/** References are refused: they may point outside or be circular. */
const structureFault = (value: unknown, depth: number): string | undefined => {
  if (depth > DEPTH_MAX) return `must be nested at most ${DEPTH_MAX} deep`
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, member] of Object.entries(value)) {
    if (/^\$(?!comment$)/.test(key)) return `must not use ${key}`
    const pattern = key === 'pattern' && typeof member === 'string' ? linearPattern(member) : undefined
    if (typeof pattern === 'string') return pattern
    if (key === 'patternProperties') return 'must not use patternProperties'
    const fault = structureFault(member, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}

const cache = new RecentMap<string, (value: unknown) => boolean>(COMPILED_MAX / 2)

const compiled = (schema: { [keyword: string]: unknown }): ((value: unknown) => boolean) => {
  const text = JSON.stringify(schema)
  const known = cache.get(text)
  if (known !== undefined) return known
  schemas.validateSchema(schema, true)
  // An Ajv instance keeps everything it compiled: this one is released with its schema.
  const validate = new Ajv2020({ ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  const test = (value: unknown): boolean => validate(value)
  cache.set(text, test)
  return test
}

const linearRegExp = Object.assign(
  (source: string, flags: string) => {
    const pattern = linearPattern(source)
    if (typeof pattern === 'string') throw new Error(pattern)
    // ajv tells patterns apart by their text.
    return { test: pattern, source, flags, toString: () => source } as unknown as RegExp
  },
  { code: 'linearRegExp' },
)

const OPTIONS = { strict: false, validateFormats: false, addUsedSchema: false, code: { regExp: linearRegExp } }

/** Shared, because compiling the meta-schema takes 30 ms per instance. */
const schemas = new Ajv2020(OPTIONS)
