import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { Failure, type FieldError } from '../kernel/errors.ts'
import type { JsonSchema } from '../kernel/json.ts'

/** Answers the faults of a value; none when it is valid. With `coerce` the value is changed in place. */
export type Check = (value: unknown) => FieldError[]

const ERRORS_MAX = 20

/** Compiles a schema for JSON bodies: nothing is coerced, and defaults are left to whoever keeps the value. */
export const compileCheck = (schema: JsonSchema): Check => checkWith(bodies, schema)

/** Compiles a schema for query and path parameters: texts become numbers and booleans where the schema asks for them. */
export const compileParametersCheck = (schema: JsonSchema): Check => checkWith(parameters, schema)

/** @throws Failure invalid that names every fault. */
export const assertValid = (check: Check, value: unknown): void => {
  const errors = check(value)
  if (errors.length > 0) throw new Failure('invalid', { message: sentence(errors), errors })
}

const sentence = (errors: FieldError[]): string => `${errors[0].path === '' ? 'The body' : errors[0].path} ${errors[0].message}`

const createAjv = (coerceTypes: boolean): Ajv2020 => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, strictRequired: false, coerceTypes, useDefaults: false })
  const addFormats = addFormatsModule as unknown as (target: Ajv2020, options: { mode: 'full'; formats: string[] }) => void
  addFormats(ajv, { mode: 'full', formats: ['date', 'email', 'uri'] })
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i)
  ajv.addFormat('date-time', isDateTime)
  ajv.addFormat('time-zone', isTimeZone)
  ajv.addKeyword('example')
  return ajv
}

const RFC_3339 = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

function isDateTime(value: string): boolean {
  if (!RFC_3339.test(value)) return false
  const day = Number(value.slice(8, 10))
  // Date.parse takes 31 February for 3 March.
  return !Number.isNaN(Date.parse(value)) && day <= new Date(Date.UTC(Number(value.slice(0, 4)), Number(value.slice(5, 7)), 0)).getUTCDate()
}

function isTimeZone(value: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

const bodies = createAjv(false)
const parameters = createAjv(true)

const checkWith = (ajv: Ajv2020, schema: JsonSchema): Check => {
  const validate = ajv.compile(schema)
  return (value) => (validate(value) ? [] : (validate.errors ?? []).slice(0, ERRORS_MAX).map(fieldError))
}

const fieldError = (error: ErrorObject): FieldError => {
  const { keyword, params, instancePath, message } = error
  if (keyword === 'additionalProperties') return { path: `${instancePath}/${pointer(params.additionalProperty)}`, message: 'is not a known field' }
  if (keyword === 'unevaluatedProperties') return { path: `${instancePath}/${pointer(params.unevaluatedProperty)}`, message: 'is not a known field' }
  if (keyword === 'required') return { path: `${instancePath}/${pointer(params.missingProperty)}`, message: 'is required' }
  if (keyword === 'enum') return { path: instancePath, message: `must be one of ${params.allowedValues.join(', ')}` }
  return { path: instancePath, message: message ?? 'is not valid' }
}

const pointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
