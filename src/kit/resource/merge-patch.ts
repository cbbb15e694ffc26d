import type { Json, JsonObject } from '../../kernel/json.ts'

/** RFC 7396. */
export const mergePatch = (target: Json | undefined, patch: Json): Json => {
  if (!isObject(patch)) return patch
  const merged: JsonObject = isObject(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = mergePatch(merged[name], value)
  }
  return merged
}

/** A merge patch of an object. */
export const mergeWhole = (before: JsonObject, patch: JsonObject): JsonObject => mergePatch(before, patch) as JsonObject

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
