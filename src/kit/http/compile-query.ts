import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { FAULTS_MAX, type FieldError } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { addFormats } from './formats.ts'
import { type Check, fieldError, OWN_SCHEMAS, whenNeeded } from './validate.ts'

const addressesAjv = (): Ajv2020 => {
  const ajv = new Ajv2020({
    ...OWN_SCHEMAS,
    strictTuples: false,
    coerceTypes: 'array',
    useDefaults: true,
    allErrors: true,
  })
  addFormats(ajv)
  return ajv
}

/** For values in addresses, where everything is a text. */
export const addresses = addressesAjv()

/** Unknown parameters are faults, even if the schema allows them, unless it has patterns for their names. */
export const compileQuery = (schema: JsonSchema = {}): Check => {
  const errorsOf = whenNeeded(addresses, { type: 'object', additionalProperties: false, ...schema })
  const several = Object.entries((schema.properties ?? {}) as { [name: string]: JsonSchema })
  const withCommas = several.flatMap(([name, { 'x-commas': takes }]) => (takes === true ? [name] : []))
  return (value) => {
    splitAtCommas(value as { [name: string]: unknown }, withCommas)
    const errors = errorsOf(value)
    return errors === undefined ? infinite(value as object) : faultsOf(errors, 'parameter').map(ofParameter)
  }
}

const splitAtCommas = (query: { [name: string]: unknown }, names: readonly string[]): void => {
  for (const name of names)
    if (query[name] !== undefined) query[name] = [query[name]].flat().flatMap((one) => String(one).split(','))
}

/** A fault of one of several values is the parameter's. */
const ofParameter = ({ path, message }: FieldError): FieldError => ({
  path: path.replace(/^(\/.+)\/\d+$/, '$1'),
  message,
})

/** `1e400` is coerced to a number that is compared with no bound. */
const infinite = (parameters: object): FieldError[] =>
  Object.entries(parameters).flatMap(([name, value]) =>
    Math.abs(value) === Number.POSITIVE_INFINITY ? [{ path: `/${name}`, message: 'must be a finite number' }] : [],
  )

export const faultsOf = (errors: readonly ErrorObject[], noun: string): FieldError[] => {
  const faults: FieldError[] = []
  for (const error of errors) {
    if (error.keyword === 'if' || faults.length >= FAULTS_MAX) continue
    const fault = fieldError(error, noun)
    if (!faults.some(({ path, message }) => path === fault.path && message === fault.message)) faults.push(fault)
  }
  return faults
}
