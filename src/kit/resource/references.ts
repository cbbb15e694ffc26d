import type { TableStore } from '../../engines/table-store.ts'
import { allEnded } from '../../kernel/all-ended.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Field } from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import { seesRow, valuesOf } from '../http/list-query.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { WriteOrigin } from './writes.ts'

/** A field of one resource that names records of another one. */
export interface Reference {
  field: string
  /** `plural` of its target. */
  target: string
  /** It may be taken out: it is optional, or a list. */
  isOptional: boolean
  /** Values of other fields under which alone a record counts as naming it. */
  namesWhile?: Field['namesWhile']
}

/** Fault of an id that exists neither for the organization nor for the caller in it. */
export const NAMES_NOTHING = 'names nothing in this organization'

/** The record that an id of a body names. @throws Failure invalid with the path when the organization has none. */
export const assertExists = async <R extends Row>(
  tables: Pick<TableStore, 'get'>,
  table: string,
  organizationId: string,
  id: string,
  path: string,
): Promise<R> => {
  const row = await tables.get<R>(table, organizationId, id)
  if (row === undefined) throw invalid(path, NAMES_NOTHING)
  return row
}

const ofDeclarations = new WeakMap<ResourceDeclaration, readonly Reference[]>()

/** The references of a resource, those in fields that the service alone writes too. */
export const referencesOf = (declaration: ResourceDeclaration): readonly Reference[] => {
  const known = ofDeclarations.get(declaration)
  if (known !== undefined) return known
  const references = Object.entries({
    ...declaration.fields,
    ...declaration.readOnly,
    ...declaration.internal,
  }).flatMap(([field, { reference, optional, schema, namesWhile }]) =>
    reference === undefined
      ? []
      : [{ field, target: reference, isOptional: optional === true || schema.type === 'array', namesWhile }],
  )
  ofDeclarations.set(declaration, references)
  return references
}

/** Ids whose records cannot be deleted while these values name them. */
export const heldBy = ({ field, namesWhile = {} }: Reference, values: { [field: string]: unknown }): string[] =>
  Object.entries(namesWhile).every(([name, ones]) => ones.includes(String(values[name]))) ? valuesOf(values, field) : []

/**
 * Checks that each newly named record exists and that the caller sees it. The service itself has checked its writes.
 * @throws Failure invalid with the path.
 */
export const assertReferences = async (
  declaration: ResourceDeclaration,
  { tables, resources }: Pick<ResourceServices, 'tables' | 'resources'>,
  caller: UserCaller | undefined,
  organizationId: string,
  values: JsonObject,
  before: JsonObject | undefined,
): Promise<void> => {
  if (caller === undefined) return
  const checks = referencesOf(declaration).flatMap(({ field, target }) => {
    const declared = resources.declarationOf(target)
    const known = valuesOf(before ?? {}, field)
    return valuesOf(values, field).flatMap((id, i) => {
      if (known.includes(id)) return []
      const own = declaration.body?.paths?.[field] ?? `/${field}`
      const path = Array.isArray(values[field]) ? `${own}/${i}` : own
      return assertExists(tables, target, organizationId, id, path).then((row) => {
        if (!seesRow(caller, row, declared)) throw invalid(path, NAMES_NOTHING)
      })
    })
  })
  await allEnded(checks)
}

/** Callers limited to hubs may only write records in one of them. @throws Failure invalid */
export const assertHubs = (caller: UserCaller, values: JsonObject, hubField: string): void => {
  if (!seesRow(caller, values, { hubField })) {
    throw invalid(
      `/${hubField}`,
      valuesOf(values, hubField).length === 0
        ? 'is required: you see only what belongs to your hubs'
        : 'must be one of your hubs',
    )
  }
}

/** The row that replaces a deleted one. @throws Failure invalid */
export const heirOf = async (
  declaration: ResourceDeclaration,
  { tables }: Pick<ResourceServices, 'tables'>,
  { caller, organizationId }: Pick<WriteOrigin, 'caller' | 'organizationId'>,
  id: string,
  replaceWith: string,
): Promise<Row> => {
  const row = await tables.get(declaration.plural, organizationId, replaceWith)
  const isSeen = row !== undefined && (caller === undefined || seesRow(caller, row, declaration))
  if (!isSeen || replaceWith === id) throw invalid('/replaceWith', 'must be the id of another one of them')
  return row
}
