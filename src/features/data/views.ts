import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Restricted } from '../../kernel/hidden-fields.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { type AttachedFile, withoutFiles } from '../../kit/files/attached-file.ts'
import type { PermissionDetail, UserCaller } from '../../kernel/caller.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { normalized } from '../../kernel/text.ts'
import type { StoredField } from './fields.ts'

export const DATA_TYPES = 'dataTypes'
export const RECORDS = 'data'

export interface DataTypeRow extends Row {
  _id: string
  organizationId: string
  version: number
  name: string
  type: string
  primaryKey: string
  fields: StoredField[]
}

export interface RecordRow extends Row {
  _id: string
  organizationId: string
  version: number
  dataTypeId: string
  /** Stored by the key of the field. */
  values: JsonObject
  recordIds: readonly string[]
  files?: AttachedFile[]
  /** A check found dangling references. */
  isDangling?: boolean
  /** It shares a value that must be unique. */
  isShared?: boolean
  /** Terms that find it. */
  terms?: string[]
}

/** Name of a type's field, without a possible prefix `values.`. */
export const bareName = (name: string): string =>
  normalized(name.startsWith('values.') ? name.slice('values.'.length) : name)

/** A value by its field's key, by own properties only: a key such as `constructor` has no inherited value. */
export const valueIn = (values: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(values, key) ? values[key] : undefined

/** The field that currently has the name, else the one that had it before. */
export const fieldNamed = (fields: readonly StoredField[], named: string): StoredField | undefined =>
  fields.find(({ name }) => name === named) ?? fields.find(({ formerNames }) => formerNames?.includes(named))

/** Names of a type's fields that the viewer's role hides; a renamed field stays hidden. */
export const hiddenOf = (
  viewer: Restricted,
  { _id, fields }: Pick<DataTypeRow, '_id' | 'fields'>,
): ReadonlySet<string> => {
  const { permissionDetails: details } = viewer
  if (details.length === 0) return NONE
  const known = ofRoles.get(details)?.get(fields)
  if (known !== undefined) return known
  const listed = details
    .filter((entry) => entry.permissionName === 'view/data' && entry.dataTypeId === _id)
    .flatMap(({ hiddenFields }) => hiddenFields)
  const isHidden = ({ _id: key, name, formerNames }: StoredField): boolean =>
    listed.includes(name) || listed.includes(key) || formerNames?.some((former) => listed.includes(former)) === true
  const hidden = listed.length === 0 ? NONE : new Set(fields.filter(isHidden).map(({ name }) => name))
  if (Object.isFrozen(details) && Object.isFrozen(fields)) {
    const ofTypes = ofRoles.get(details) ?? new WeakMap()
    ofRoles.set(details, ofTypes.set(fields, hidden))
  }
  return hidden
}

const NONE: ReadonlySet<string> = new Set()
/** Cached for rows of roles and types that are shared and immutable. */
const ofRoles = new WeakMap<readonly PermissionDetail[], WeakMap<readonly StoredField[], ReadonlySet<string>>>()

/**
 * A record as a viewer may see it: values by the current names of their fields, without those that the role hides.
 * Every output of a record goes through here: reads, lists, live messages, webhooks, notifications, exports, the audit
 * log. Without a viewer nothing is hidden: that is for the service's own work.
 */
export const shownRecord = <R extends Row>(viewer: Restricted | undefined, type: DataTypeRow | undefined, row: R): R =>
  recordShower(viewer, type)(row)

/** `shownRecord` for many rows: hidden fields depend on the type and the viewer alone. */
export const recordShower = (
  viewer: Restricted | undefined,
  type: DataTypeRow | undefined,
): (<R extends Row>(row: R) => R) => {
  const hidden = viewer === undefined || type === undefined ? undefined : hiddenOf(viewer, type)
  const shown = (type?.fields ?? []).filter(({ name }) => hidden?.has(name) !== true)
  return (row) => {
    const kept = row.values as JsonObject
    const values: JsonObject = {}
    for (const { _id, name } of shown) if (Object.hasOwn(kept, _id)) values[name] = kept[_id]
    return { ...withoutFiles(row), values }
  }
}

/** Whether records of a changed type are being checked again. Also holds its fields, for the index of its records. */
export const CHECKS: TableDeclaration = { name: 'dataChecks', version: 1, equality: [] }

export interface CheckRow extends Row {
  version: number
  primaryKey: string
  fields: StoredField[]
  isRunning: boolean
  /** ms since the epoch: writes logged until then may have been validated against the previous type. */
  judgedUntil?: number
  /** Some records share a value that must be unique. */
  hasShared?: boolean
}

export const readRecord = async <R extends Row>(
  tables: Pick<TableStore, 'get'>,
  caller: UserCaller,
  row: R,
): Promise<R> => {
  if (row.values === undefined) return row
  const type = await tables.get<DataTypeRow>(DATA_TYPES, caller.organizationId, row.dataTypeId as string)
  return shownRecord(caller, type, row)
}
