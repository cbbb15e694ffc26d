import { isObject, type Json, type JsonObject } from '../../kernel/json.ts'

/** A merge patch of an object (RFC 7396). */
export const mergePatch = (target: JsonObject, patch: JsonObject): JsonObject => {
  const merged = { ...target }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = isObject(value) ? mergePatch(objectOf(merged[name]), value) : value
  }
  return merged
}

const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})
