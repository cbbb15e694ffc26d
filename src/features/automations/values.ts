import type { FieldError } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject, pointerTo } from '../../kernel/json.ts'

/*
 * Values in the details of automations: static values are used unchanged, `{ref: path}` is read from the event and
 * `{fromDataSource: field}` from the record of the event's task. Both are objects with that one text member: any other
 * object is static, such as a load whose dimension is called `ref`.
 */

export type Dynamic = { from: 'event'; path: string } | { from: 'dataSource'; field: string }

const DEPTH_MAX = 20

const dynamicOf = (value: Json): Dynamic | undefined => {
  if (!isObject(value)) return undefined
  const names = Object.keys(value)
  if (names.length !== 1) return undefined
  const [name] = names
  const said = value[name]
  if (typeof said !== 'string') return undefined
  if (name === 'ref') return { from: 'event', path: said }
  return name === 'fromDataSource' ? { from: 'dataSource', field: said } : undefined
}

/** Faults of a value at a path, in its nesting and in the names of its dynamic parts. */
export const valueFaults = (
  value: Json,
  path: string,
  faultOf: (dynamic: Dynamic) => string | undefined,
  depth = 0,
): FieldError[] => {
  if (depth > DEPTH_MAX) return [{ path, message: `must be nested at most ${DEPTH_MAX} deep` }]
  const dynamic = dynamicOf(value)
  if (dynamic !== undefined) {
    const message = faultOf(dynamic)
    return message === undefined ? [] : [{ path: `${path}/${memberOf(dynamic)}`, message }]
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === '__proto__'
      ? [{ path: `${path}/__proto__`, message: 'must not be called so' }]
      : valueFaults(member, path + pointerTo(name), faultOf, depth + 1),
  )
}

/** Whether a value without faults is static. */
export const isStatic = (value: Json): boolean => {
  if (typeof value !== 'object' || value === null) return true
  return dynamicOf(value) === undefined && Object.values(value).every(isStatic)
}

/** All dynamic parts of a value without faults. */
export const dynamicsIn = (value: Json): Dynamic[] => {
  const dynamic = dynamicOf(value)
  if (dynamic !== undefined) return [dynamic]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(dynamicsIn) : []
}

/**
 * The value with its dynamic parts resolved; undefined, and left out of the enclosing object or list, if it resolves to
 * nothing. Called for values without faults.
 */
export const resolved = (value: Json, valueFor: (dynamic: Dynamic) => Json | undefined): Json | undefined => {
  const dynamic = dynamicOf(value)
  if (dynamic !== undefined) return valueFor(dynamic) ?? undefined
  if (Array.isArray(value)) return value.flatMap((item) => listed(resolved(item, valueFor)))
  return isObject(value) ? resolvedObject(value, valueFor) : value
}

export const resolvedObject = (value: JsonObject, valueFor: (dynamic: Dynamic) => Json | undefined): JsonObject =>
  Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const found = resolved(member, valueFor)
      return found === undefined ? [] : [[name, found]]
    }),
  )

const listed = (item: Json | undefined): [Json] | [] => (item === undefined ? [] : [item])

const memberOf = ({ from }: Dynamic): string => (from === 'event' ? 'ref' : 'fromDataSource')
