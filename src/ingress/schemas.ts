import { Ajv2020, type Options } from 'ajv/dist/2020.js'
import type { JsonSchema } from '../kernel/json.ts'
import { addFormats } from '../kit/http/formats.ts'
import { addresses, faultsOf } from '../kit/http/compile-query.ts'
import { type Check, OWN_SCHEMAS, whenNeeded } from '../kit/http/validate.ts'

const ajvWith = (options: Options): Ajv2020 => {
  const ajv = new Ajv2020({ ...OWN_SCHEMAS, strictTuples: false, ...options })
  addFormats(ajv)
  return ajv
}

const bodies = ajvWith({})
/** Finding every fault of a large body is work that a client can force: one instance stops at the first. */
const bodiesInFull = ajvWith({ allErrors: true })

export const compileBody = (schema: JsonSchema): Check => {
  const quick = whenNeeded(bodies, schema)
  const full = whenNeeded(bodiesInFull, schema)
  return (value) => {
    const first = quick(value)
    if (first === undefined) return []
    return faultsOf((isSmall(value) ? full(value) : undefined) ?? first, 'field')
  }
}

export const compileParams = (properties: { [name: string]: JsonSchema }): Check => {
  const names = Object.keys(properties)
  if (names.length === 0) return () => []
  const errorsOf = whenNeeded(addresses, { type: 'object', properties, required: names })
  return (value) => faultsOf(errorsOf(value) ?? [], 'parameter')
}

/** At most a few hundred values, counted without walking further. */
const isSmall = (value: unknown): boolean => {
  let left = 500
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next !== 'object' || next === null) continue
    for (const inner of Object.values(next)) {
      if (--left < 0) return false
      waiting.push(inner)
    }
  }
  return true
}
