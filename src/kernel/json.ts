/** A value that JSON can carry. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** A JSON Schema (2020-12), the one that ajv validates with and that the OpenAPI document shows. */
export type JsonSchema = { [keyword: string]: unknown }
