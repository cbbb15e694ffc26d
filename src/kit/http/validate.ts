import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { assertNoFaults, FAULTS_MAX, type FieldError } from '../../kernel/errors.ts'
import { type JsonSchema, pointerTo } from '../../kernel/json.ts'
import { TIME_OF_DAY } from '../../kernel/schema.ts'
import { addFormats } from './formats.ts'

/** Answers the faults of a value; none when it is valid. */
export type Check = (value: unknown) => FieldError[]

/** Compiles a schema for JSON bodies: nothing is coerced, and the keeper of the value applies defaults. */
export const compileCheck = (schema: JsonSchema): Check => {
  const errorsOf = whenNeeded(bodies, schema)
  return (value) => (errorsOf(value) ?? []).slice(0, FAULTS_MAX).map((error) => fieldError(error))
}

/**
 * Answers the errors of a value, undefined when it is valid. A schema is compiled for its first value: compiling all
 * took a third of a start.
 * @throws Error when the schema does not compile, at the first value
 */
export const whenNeeded = (ajv: Ajv2020, schema: JsonSchema): ((value: unknown) => ErrorObject[] | undefined) => {
  let validate: ValidateFunction | undefined
  return (value) => {
    validate ??= ajv.compile(schema)
    return validate(value) ? undefined : (validate.errors ?? [])
  }
}

/** @throws Failure invalid that names every fault. */
export const assertValid = (check: Check, value: unknown): void => assertNoFaults(check(value))

/**
 * For schemas of the program: without the meta-schema, which takes 50 ms to compile in each instance. The tests
 * validate the documents, which show all of them, against it.
 */
export const OWN_SCHEMAS = {
  strict: true,
  strictTypes: false,
  strictRequired: false,
  meta: false,
  validateSchema: false,
  // Checks run as fast without it, and compiling them takes a third less.
  code: { optimize: false },
} as const

const createAjv = (): Ajv2020 => {
  const ajv = new Ajv2020({ ...OWN_SCHEMAS, allErrors: true })
  addFormats(ajv)
  return ajv
}

const bodies = createAjv()

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

const TYPES: { readonly [type: string]: string } = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

const FORMATS: { readonly [format: string]: string } = {
  uuid: 'an id, such as 0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  email: 'an e-mail address, such as ada@example.com',
  uri: 'an address, such as https://example.com/hook',
  date: 'a date, such as 2026-11-20',
  'date-time': 'a time in RFC 3339, such as 2026-11-20T08:00:00Z, or epoch milliseconds',
  'time-zone': 'a time zone, such as Europe/Warsaw',
  language: 'a language, such as de or pt-BR',
  currency: 'a currency, such as EUR',
}

/** A map, as customers write patterns too: one may be the name of a member that every object has. */
const PATTERNS: ReadonlyMap<string, string> = new Map([[TIME_OF_DAY, 'a time of day, such as 07:30']])

export const typesSaid = (types: string | readonly string[]): string =>
  [types]
    .flat()
    .map((type) => TYPES[type] ?? type)
    .join(' or ')

/** Clear wordings of messages of the validator that people do not understand; undefined for clear ones. */
const SENTENCES: { readonly [keyword: string]: (params: ErrorObject['params']) => string } = {
  type: ({ type }) => `must be ${typesSaid(typeof type === 'string' ? type.split(',') : type)}`,
  minLength: ({ limit }) => `must have at least ${counted(limit, 'character', 'characters')}`,
  maxLength: ({ limit }) => `must have at most ${counted(limit, 'character', 'characters')}`,
  minItems: ({ limit }) => `must have at least ${counted(limit, 'entry', 'entries')}`,
  maxItems: ({ limit }) => `must have at most ${counted(limit, 'entry', 'entries')}`,
  minProperties: ({ limit }) => `must have at least ${counted(limit, 'field', 'fields')}`,
  maxProperties: ({ limit }) => `must have at most ${counted(limit, 'field', 'fields')}`,
  uniqueItems: ({ i, j }) =>
    `must not have the same entry twice: those at ${Math.min(i, j)} and ${Math.max(i, j)} are equal`,
  format: ({ format }) => `must be ${FORMATS[format] ?? `in the format ${format}`}`,
  pattern: ({ pattern }) =>
    PATTERNS.has(pattern) ? `must be ${PATTERNS.get(pattern)}` : `must have the form ${pattern}`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${multipleOf}`,
  anyOf: () => 'has none of the forms that are allowed here',
  oneOf: () => 'must have exactly one of the forms that are allowed here',
  not: () => 'is not allowed here',
  'false schema': () => 'is not allowed here',
}

const sentenceOf = (keyword: string, params: ErrorObject['params']): string | undefined =>
  Object.hasOwn(SENTENCES, keyword) ? SENTENCES[keyword](params) : undefined

/** One fault as it is answered; `noun` is the word for an unknown member. */
export const fieldError = ({ keyword, params, instancePath, message }: ErrorObject, noun = 'field'): FieldError => {
  const below = (name: string): string => instancePath + pointerTo(name)
  if (keyword === 'additionalProperties')
    return { path: below(params.additionalProperty), message: `is not a known ${noun}` }
  if (keyword === 'unevaluatedProperties')
    return { path: below(params.unevaluatedProperty), message: `is not a known ${noun}` }
  if (keyword === 'required') return { path: below(params.missingProperty), message: 'is required' }
  if (keyword === 'enum') return { path: instancePath, message: `must be one of ${choices(params.allowedValues)}` }
  if (keyword === 'const') return { path: instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` }
  return { path: instancePath, message: sentenceOf(keyword, params) ?? message ?? 'is not valid' }
}

/** The values of an enum; that a merge patch also takes null goes without saying. */
const choices = (values: readonly unknown[]): string => values.filter((value) => value !== null).join(', ')
