import { heldSchema } from './new-names.ts'
import { type Fields, objectSchema, patchSchema } from '../../kernel/schema.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { answered, DATE_TIME, UUID } from '../http/page-members.ts'
import type { ResourceDeclaration } from './declaration.ts'

const ANY: JsonSchema = { description: 'Accepted and ignored, so that what was read can be written back.' }

/** Name of a record in the documentation. */
export const nameOf = ({ noun }: Pick<ResourceDeclaration, 'noun'>): string => noun[0].toUpperCase() + noun.slice(1)

export const writeOnlyOf = ({ secrets }: Pick<ResourceDeclaration, 'secrets'>): readonly string[] =>
  secrets?.writeOnly ?? []

/** The body of a create: the fields, and `_id` where the client makes the id. */
export const createSchema = ({ fields, body }: Pick<ResourceDeclaration, 'fields' | 'body'>): JsonSchema => {
  const schema = objectSchema({ ...fields, ...body?.accepts })
  return { ...schema, properties: { _id: UUID, ...(schema.properties as object) } }
}

/** The body of a PUT: the fields, and the further members of a GET. */
export const replaceSchema = (declaration: ResourceDeclaration): JsonSchema => {
  const schema = heldSchema(
    objectSchema({ ...keepable(declaration, writeOnlyOf(declaration)), ...declaration.body?.accepts }),
  )
  return { ...schema, properties: { ...ignored(declaration), ...(schema.properties as object) } }
}

/** The body of a PATCH: a merge patch of the fields. */
export const amendSchema = (declaration: ResourceDeclaration): JsonSchema => {
  const schema = heldSchema(
    patchSchema({ ...declaration.fields, ...declaration.body?.accepts, ...declaration.body?.amends }),
  )
  return { ...schema, properties: { ...ignored(declaration), ...(schema.properties as object) } }
}

/** Schema of `data` in the answer to a read. */
export const rowSchema = (
  declaration: Pick<ResourceDeclaration, 'noun' | 'fields' | 'readOnly' | 'secrets' | 'personal'>,
): JsonSchema => {
  const fields = { ...without(declaration.fields, writeOnlyOf(declaration)), ...declaration.readOnly }
  const { personal } = declaration
  const optional = Object.keys(fields).filter((name) => fields[name].optional || personal?.fields.includes(name))
  const version = { type: 'integer', minimum: 1 }
  const base = { _id: UUID, organizationId: UUID, version, createdAt: DATE_TIME, updatedAt: DATE_TIME }
  const shown = Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, heldSchema(schema)]))
  return answered(nameOf(declaration), { ...base, ...shown }, optional)
}

/** The schema that the values of a write must satisfy after defaults and merge: a secret that was kept is one of them. */
export const valuesSchema = (declaration: ResourceDeclaration): JsonSchema =>
  heldSchema(objectSchema(keepable(declaration)))

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

/** The fields, of which `kept` and those that cannot be changed may be left out. */
const keepable = (declaration: ResourceDeclaration, kept: readonly string[] = []): Fields => {
  const mayBeLeftOut = [...kept, ...(declaration.fixed ?? [])]
  return Object.fromEntries(
    Object.entries(declaration.fields).map(([name, field]) => [
      name,
      mayBeLeftOut.includes(name) ? { ...field, optional: true } : field,
    ]),
  )
}

/** Members of a GET that nobody may write; a linked member may be part of the body. */
const ignored = (declaration: ResourceDeclaration): JsonObject => {
  const names = ['_id', 'organizationId', 'createdAt', 'updatedAt', ...Object.keys(declaration.readOnly ?? {})]
  const version = { type: 'integer', minimum: 1, description: 'The version that was read; another one by now is 409.' }
  return { ...Object.fromEntries(names.map((name) => [name, ANY])), version } as JsonObject
}
