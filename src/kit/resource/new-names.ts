import { assertNoFaults, type FieldError } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject, type JsonSchema, pointerTo } from '../../kernel/json.ts'
import type { Fields } from '../../kernel/schema.ts'
import { textFault, type TextKind } from '../../kernel/text.ts'

/** The schema for a record that may have been made under weaker rules for names. */
export const heldSchema = (schema: JsonSchema): JsonSchema => held(schema) as JsonSchema

const held = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(held)
  if (typeof part !== 'object' || part === null) return part
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      name === 'x-text' && value === ('newName' satisfies TextKind) ? ('name' satisfies TextKind) : held(value),
    ]),
  )
}

/**
 * The new names of a change, by their field: unchanged ones pass.
 * @throws Failure invalid that names every fault
 */
export const assertNewNames = async (
  fields: Fields,
  body: JsonObject,
  before: () => Promise<object | undefined>,
): Promise<void> => {
  const faults = Object.entries(body).flatMap(([name, value]) =>
    faultsOf(fields[name]?.schema ?? {}, value, pointerTo(name)),
  )
  if (faults.length === 0) return
  const row = await before()
  const known = row === undefined ? new Set<string>() : textsIn(row)
  assertNoFaults(faults.filter(({ text }) => !known.has(text)).map(({ path, message }) => ({ path, message })))
}

const faultsOf = (schema: JsonSchema, value: Json | undefined, path: string): (FieldError & { text: string })[] => {
  if (typeof value === 'string') {
    const message = schema['x-text'] === 'newName' ? textFault(value, 'newName') : undefined
    return message === undefined ? [] : [{ path, message, text: value }]
  }
  if (Array.isArray(value)) return value.flatMap((item, i) => faultsOf(below(schema.items), item, `${path}/${i}`))
  if (!isObject(value)) return []
  const properties = below(schema.properties)
  return Object.entries(value).flatMap(([name, member]) =>
    faultsOf(below(properties[name] ?? schema.additionalProperties), member, path + pointerTo(name)),
  )
}

const below = (schema: unknown): JsonSchema => (isObject(schema) ? (schema as JsonSchema) : {})

const textsIn = (value: object): Set<string> => {
  const texts = new Set<string>()
  const collect = (part: unknown): void => {
    if (typeof part === 'string') texts.add(part)
    else if (typeof part === 'object' && part !== null) Object.values(part).forEach(collect)
  }
  collect(value)
  return texts
}
