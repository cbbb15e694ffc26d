import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject, pointerTo } from '../../kernel/json.ts'

const MASK = '***'
const SECRET = /key|secret|token|password/i

/** The value as answered: members whose names denote secrets are `***`, at any depth. */
export const masked = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(masked)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, isSecret(name, one) ? MASK : masked(one)]),
  )
}

/**
 * The value with each `***` replaced from `before`. List items are matched by their answered form or, if that has
 * changed, by their index in a list of the same length.
 * @throws Failure invalid for a `***` without a value to keep
 */
export const unmasked = (value: Json, before: Json | undefined, path: string): Json => {
  if (Array.isArray(value)) return unmaskedList(value, Array.isArray(before) ? before : [], path)
  if (!isObject(value)) return value
  const known: JsonObject = isObject(before) ? before : {}
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      const kept = Object.hasOwn(known, name) ? known[name] : undefined
      const at = path + pointerTo(name)
      if (!isSecret(name, one) || one !== MASK) return [name, unmasked(one, kept, at)]
      if (kept === undefined) throw invalid(at, `must be a value: there is none that ${MASK} could keep`)
      return [name, kept]
    }),
  )
}

const unmaskedList = (sent: readonly Json[], before: readonly Json[], path: string): Json[] => {
  const left = before.map((one) => ({ one, shown: masked(one) }))
  const places = sent.map((item) => {
    const place = left.findIndex(({ shown }) => isDeepStrictEqual(shown, item))
    return place < 0 ? undefined : left.splice(place, 1)[0].one
  })
  return sent.map((item, i) =>
    unmasked(item, places[i] ?? (sent.length === before.length ? before[i] : undefined), `${path}/${i}`),
  )
}

const isSecret = (name: string, value: Json): boolean => value !== null && SECRET.test(name)
