import type { JsonSchema } from '../../kernel/json.ts'
import { dataOf, type RecordedEvent } from '../../kernel/event.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { eventTypes, idOfStream, rowAfter, rowParts, type ResourceData } from '../commands/declared-event.ts'
import type { Projection, Rows } from '../consumers/projection.ts'
import { linkRows } from '../http/link-rows.ts'
import { type ListShape, valuesOf } from '../http/list-query.ts'
import { rowSchema } from './schemas.ts'
import type { ResourceDeclaration } from './declaration.ts'
import { referencesOf } from './references.ts'

export const tableOf = (declaration: ResourceDeclaration): TableDeclaration => {
  const { equality = [], range = [], sparse = [], text = [] } = declaration.table?.indexes ?? {}
  const hubField = declaration.hubField === undefined ? [] : [declaration.hubField]
  const references = referencesOf(declaration).map(({ field }) => field)
  return {
    name: declaration.plural,
    version: declaration.table?.version ?? 1,
    equality: [...new Set(['_id', ...equality, ...hubField, ...references])],
    range: [...new Set(['createdAt', 'updatedAt', ...range, ...sparse])],
    ...(sparse.length > 0 && { sparse }),
    text,
    ...(declaration.table?.isShared === true && { isShared: true }),
  }
}

/** Parameters and members of the list of this resource. */
export const listShape = (declaration: ResourceDeclaration): ListShape => {
  const table = tableOf(declaration)
  const schemas = (rowSchema(declaration).properties ?? {}) as { [field: string]: JsonSchema }
  const shown = (table.equality ?? []).filter((name) => Object.hasOwn(schemas, name))
  const { hubField, audience, personal } = declaration
  const { filters = {}, sorts = {}, computed = [], absent, patterns } = declaration.list ?? {}
  const several = Object.keys(filters).filter((name) => filters[name].several === true)
  const plain = [...shown, ...computed].filter((name) => !Object.hasOwn(filters, name))
  return {
    table,
    members: Object.keys(schemas),
    filters: {
      ...Object.fromEntries([...shown, ...computed].map((name) => [name, filterSchema(schemas[name])])),
      ...Object.fromEntries(Object.entries(filters).map(([name, { schema }]) => [name, schema])),
    },
    several: [...plain, ...several],
    absent,
    patterns,
    computed,
    conditions: Object.fromEntries(Object.entries(filters).map(([name, { where }]) => [name, where])),
    sortable: [...(table.range ?? []).filter((name) => Object.hasOwn(schemas, name)), ...Object.keys(sorts)],
    sorts,
    searchable: (table.text ?? []).length > 0,
    hubField,
    audience,
    personal,
  }
}

/** The part of a projection that keeps the table of a resource. It reads no table but its own. */
export type RowSource = Pick<Projection, 'tables' | 'prefixes' | 'inputs' | 'apply'>

/** Keeps the rows of a resource: from its own events, and for `links` from those of the naming resources. */
export const rowSource = (declaration: ResourceDeclaration): RowSource => {
  const { noun, plural: table } = declaration
  const types = eventTypes(noun)
  const links = Object.entries(declaration.table?.links ?? {}).map(([member, { noun: other, field }]) => ({
    member,
    field,
    prefix: `${other}-`,
    types: eventTypes(other),
  }))
  return {
    tables: [tableOf(declaration)],
    prefixes: [`${noun}-`, ...links.map(({ prefix }) => prefix)],
    inputs: [types, ...links.map((link) => link.types)].flatMap((named) => Object.values(named)),
    apply: async (event, rows) => {
      const data = dataOf<ResourceData>(event)
      if (event.type === types.deleted) rows.delete(table, data.organizationId, idOfStream(event.stream))
      else if (event.type === types.created || event.type === types.changed)
        await putRow(declaration, event, data, rows)
      for (const { member, field, types: others } of links) {
        if (!Object.values(others).includes(event.type)) continue
        const named = event.type === others.deleted ? [] : valuesOf(data.values, field)
        await linkRows(rows, { table, scope: data.organizationId, field: member }, idOfStream(event.stream), named)
      }
    },
  }
}

const putRow = async (
  declaration: ResourceDeclaration,
  event: RecordedEvent,
  data: ResourceData,
  rows: Rows,
): Promise<void> => {
  const { plural: table } = declaration
  const id = idOfStream(event.stream)
  const row = rowAfter(event, ...rowParts(declaration, data))
  const members = Object.keys(declaration.table?.links ?? {})
  const before = members.length === 0 ? undefined : await rows.get(table, data.organizationId, id)
  for (const member of members) row[member] = before?.[member] ?? []
  rows.put(table, data.organizationId, id, row)
}

/** The query parameter that filters by a field: its own schema, or that of its items. */
const filterSchema = (schema: JsonSchema): JsonSchema => {
  const { default: _shown, ...rest } = schema.type === 'array' ? (schema.items as JsonSchema) : schema
  return rest
}
