import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { FAULTS_MAX, type FieldError } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { addFormats } from './formats.ts'
import { ABSENT_VALUE } from './list-query.ts'
import { isPlainNumber } from './plain-number.ts'
import { type Check, fieldError, OWN_SCHEMAS, typesSaid, whenNeeded } from './validate.ts'

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
  const numbers = several.flatMap(([name, { type, items }]) => {
    const of = items as JsonSchema | undefined
    const one = type === 'array' ? ((of?.else as JsonSchema | undefined) ?? of)?.type : type
    return one === 'integer' || one === 'number' ? [[name, one] as const] : []
  })
  return (value) => {
    const asked = value as { [name: string]: unknown }
    splitAtCommas(asked, withCommas)
    const loose = looseNumbers(asked, numbers)
    if (loose.length > 0) return loose
    const errors = errorsOf(value)
    return errors === undefined ? infinite(asked) : faultsOf(errors, 'parameter').map(ofParameter)
  }
}

/** Texts that the validator would take for numbers, and a person would not. */
const looseNumbers = (
  query: { [name: string]: unknown },
  numbers: readonly (readonly [name: string, type: 'integer' | 'number'])[],
): FieldError[] =>
  numbers.flatMap(([name, type]) => {
    const texts = query[name] === undefined ? [] : [query[name]].flat()
    if (texts.every((text) => typeof text !== 'string' || text === ABSENT_VALUE || isPlainNumber(text, type))) return []
    return [{ path: `/${name}`, message: `must be ${typesSaid(type)}, in decimal digits` }]
  })

const splitAtCommas = (query: { [name: string]: unknown }, names: readonly string[]): void => {
  for (const name of names)
    if (query[name] !== undefined) query[name] = [query[name]].flat().flatMap((one) => String(one).split(','))
}

/** A fault of one of several values is the parameter's. */
const ofParameter = ({ path, message }: FieldError): FieldError => ({
  path: path.replace(/^(\/.+)\/\d+$/, '$1'),
  message,
})

/** `1e400` is coerced to a number that is compared with no bound; where a text is expected it stays one. */
const infinite = (parameters: object): FieldError[] =>
  Object.entries(parameters).flatMap(([name, value]) =>
    [value].flat().some((one) => typeof one === 'number' && Math.abs(one) === Number.POSITIVE_INFINITY)
      ? [{ path: `/${name}`, message: 'must be a finite number' }]
      : [],
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
