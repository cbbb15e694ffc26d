import type { UserCaller } from '../../kernel/caller.ts'
import { patchSchema, objectSchema, type Fields } from '../../kernel/schema.ts'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { Services } from '../services.ts'

/** What resources need of the services. */
export type ResourceServices = Pick<Services, 'log' | 'tables' | 'keyring'>

/** A write that is about to happen, for checks beyond the schema. */
export interface WriteContext {
  services: ResourceServices
  /** Absent where the service itself writes (such as the first hub of an organization). */
  caller?: UserCaller
  organizationId: string
  id: string
  /** All fields as they will be. */
  values: JsonObject
  /** As they were; absent for a create. */
  before?: JsonObject
}

/** A row that is about to be answered. */
export interface PresentContext {
  caller: UserCaller
  /** ms since the epoch. */
  now: number
}

export interface ResourceDeclaration {
  /** Also the category of its streams and the beginning of its event types, in camel case: `exportConfig`. */
  noun: string
  /** Also the name of its table. */
  plural: string
  tag: string
  /** Default `/<noun>` and `/<plural>`. */
  paths?: { one: string; many: string }
  fields: Fields
  /** Fields of the row that no client writes: accepted and ignored in PUT and PATCH, refused in POST. */
  readOnly?: Fields
  /** Fields that are stored encrypted and never answered; left out of a PUT they keep their value. */
  writeOnly?: readonly string[]
  permissions: { view: string; edit: string }
  /** The field of the row that names its hub or hubs; the resource then exists only for users who have one of them. */
  hubField?: string
  /** Beside `_id`, `createdAt` and `updatedAt`: `range` fields sort lists, `equality` fields filter them, `text` serves `q`. */
  indexes?: { equality?: readonly string[]; range?: readonly string[]; text?: readonly string[] }
  /** Raise it when the shape of rows changes. */
  version?: number
  /** A field whose value (case aside) only one record of an organization may have. */
  unique?: string
  /** A whole body of a create, for the documentation; the tests send it. */
  example: JsonObject
  /** Refuses a write that the schema cannot refuse, such as a hub of another organization. */
  checks?(write: WriteContext): Promise<void>
  /** Refuses a deletion, such as that of a hub in use. */
  beforeDelete?(write: WriteContext): Promise<void>
  /** Changes what is answered for a row, such as a status that depends on the time. */
  present?(row: Row, context: PresentContext): Row
}

const ANY: JsonSchema = { description: 'Accepted and ignored, so that what was read can be written back.' }

const UUID: JsonSchema = { type: 'string', format: 'uuid' }

export const writeOnlyOf = (declaration: ResourceDeclaration): readonly string[] => declaration.writeOnly ?? []

/** The body of a create: the fields, and `_id` where the client makes the id. */
export const createSchema = (declaration: Pick<ResourceDeclaration, 'fields'>): JsonSchema => {
  const schema = objectSchema(declaration.fields)
  return { ...schema, properties: { _id: UUID, ...(schema.properties as object) } }
}

/** The body of a PUT: the fields, and what a GET answers beside them. */
export const replaceSchema = (declaration: ResourceDeclaration): JsonSchema => {
  const schema = objectSchema(keepable(declaration))
  return { ...schema, properties: { ...(schema.properties as object), ...ignored(declaration) } }
}

/** The body of a PATCH: a merge patch of the fields. */
export const amendSchema = (declaration: ResourceDeclaration): JsonSchema => {
  const schema = patchSchema(declaration.fields)
  return { ...schema, properties: { ...(schema.properties as object), ...ignored(declaration) } }
}

/** What a read answers in `data`. */
export const rowSchema = (declaration: Pick<ResourceDeclaration, 'fields' | 'readOnly' | 'writeOnly'>): JsonSchema => {
  const shown = objectSchema({ ...without(declaration.fields, declaration.writeOnly ?? []), ...declaration.readOnly })
  const base = {
    _id: UUID,
    organizationId: UUID,
    version: { type: 'integer', minimum: 1 },
    createdAt: { type: 'string', format: 'date-time' },
    updatedAt: { type: 'string', format: 'date-time' },
  }
  return { type: 'object', properties: { ...base, ...(shown.properties as object) } }
}

/** The schema that the values of a write must satisfy after defaults and merge, secrets that are kept aside. */
export const valuesSchema = (declaration: ResourceDeclaration): JsonSchema => objectSchema(keepable(declaration))

/** The writable fields of a body, with defaults and in the form that is kept. */
export const withDefaults = (fields: Fields, body: JsonObject): JsonObject => {
  const values: JsonObject = {}
  for (const [name, field] of Object.entries(fields)) {
    const value = body[name] ?? field.default
    if (value === undefined) continue
    values[name] = field.normalize === undefined ? value : field.normalize(value)
  }
  return values
}

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

export const pick = (values: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]))

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

const keepable = (declaration: ResourceDeclaration): Fields => {
  const secret = writeOnlyOf(declaration)
  return Object.fromEntries(
    Object.entries(declaration.fields).map(([name, field]) => [
      name,
      secret.includes(name) ? { ...field, optional: true } : field,
    ]),
  )
}

const ignored = (declaration: ResourceDeclaration): JsonObject =>
  Object.fromEntries([
    ...['_id', 'organizationId', 'createdAt', 'updatedAt', ...Object.keys(declaration.readOnly ?? {})].map((name) => [
      name,
      ANY,
    ]),
    ['version', { type: 'integer', minimum: 1, description: 'The version that was read; another one by now is 409.' }],
  ]) as JsonObject
