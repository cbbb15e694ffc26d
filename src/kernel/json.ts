/** A value that JSON can carry. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** A JSON Schema (2020-12), the one that ajv validates with and that the OpenAPI document shows. */
export type JsonSchema = { [keyword: string]: unknown }

/** The value at a path of own members; undefined where there is none. */
export const valueAt = (data: unknown, path: readonly string[]): unknown => {
  let value = data
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as { [key: string]: unknown })[step]
  }
  return value
}
