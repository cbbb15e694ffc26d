import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { assertNoFaults, FAULTS_MAX, type FieldError } from '../../kernel/errors.ts'
import { type JsonSchema, pointerTo } from '../../kernel/json.ts'
import { addFormats } from './formats.ts'

/** Answers the faults of a value; none when it is valid. */
export type Check = (value: unknown) => FieldError[]

/** Compiles a schema for JSON bodies: nothing is coerced, and defaults are left to whoever keeps the value. */
export const compileCheck = (schema: JsonSchema): Check => {
  const errorsOf = whenNeeded(bodies, schema)
  return (value) => (errorsOf(value) ?? []).slice(0, FAULTS_MAX).map((error) => fieldError(error))
}

/**
 * Answers the errors of a value, undefined when it is valid. A schema is compiled for the first value that comes: all of
 * them took a third of a start.
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
 * For schemas of the program: without the schema of schemas, which takes 50 ms to compile in each instance. The tests hold
 * the documents, which show all of them, against it.
 */
export const OWN_SCHEMAS = {
  strict: true,
  strictTypes: false,
  strictRequired: false,
  meta: false,
  validateSchema: false,
} as const

const createAjv = (): Ajv2020 => {
  const ajv = new Ajv2020({ ...OWN_SCHEMAS, allErrors: true })
  addFormats(ajv)
  return ajv
}

const bodies = createAjv()

/** One fault as it is answered; `noun` is what an unknown member is called. */
export const fieldError = ({ keyword, params, instancePath, message }: ErrorObject, noun = 'field'): FieldError => {
  const below = (name: string): string => instancePath + pointerTo(name)
  if (keyword === 'additionalProperties')
    return { path: below(params.additionalProperty), message: `is not a known ${noun}` }
  if (keyword === 'unevaluatedProperties')
    return { path: below(params.unevaluatedProperty), message: `is not a known ${noun}` }
  if (keyword === 'required') return { path: below(params.missingProperty), message: 'is required' }
  if (keyword === 'enum') return { path: instancePath, message: `must be one of ${choices(params.allowedValues)}` }
  if (keyword === 'const') return { path: instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` }
  return { path: instancePath, message: message ?? 'is not valid' }
}

/** The values of an enum; that a merge patch also takes null goes without saying. */
const choices = (values: readonly unknown[]): string => values.filter((value) => value !== null).join(', ')
