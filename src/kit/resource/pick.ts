import type { JsonObject } from '../../kernel/json.ts'
import type { Field, Fields } from '../../kernel/schema.ts'

const entries = new WeakMap<Fields, readonly [string, Field][]>()

const entriesOf = (fields: Fields): readonly [string, Field][] => {
  const known = entries.get(fields)
  if (known !== undefined) return known
  const made = Object.entries(fields)
  entries.set(fields, made)
  return made
}

/** The writable fields of a body, with defaults and in their stored form, in which those of `kept` are already. */
export const withDefaults = (fields: Fields, body: JsonObject, kept: JsonObject = {}): JsonObject => {
  const values: JsonObject = {}
  for (const [name, field] of entriesOf(fields)) {
    const value = body[name] ?? field.default
    if (value === undefined) continue
    values[name] = field.normalize === undefined || value === kept[name] ? value : field.normalize(value)
  }
  return values
}

/** Names are those of fields. */
export const pick = (values: JsonObject, names: readonly string[]): JsonObject => {
  const picked: JsonObject = {}
  for (const name of names) if (values[name] !== undefined) picked[name] = values[name]
  return picked
}

/** Unlike `pick`, keeps null: in a merge patch it takes the field away. */
export const pickWithNull = (body: JsonObject, fields: object): JsonObject =>
  Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(fields, name)))

/** The members that the service keeps beside the fields. */
export const pickOthers = (values: JsonObject, fields: object): JsonObject =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(fields, name)))
