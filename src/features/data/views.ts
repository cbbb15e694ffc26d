import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Restricted } from '../../kernel/hidden-fields.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { type AttachedFile, withoutFiles } from '../../kit/files/attached-file.ts'
import type { PermissionDetail, UserCaller } from '../../kernel/caller.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
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
  /** As they are kept: by the key of the field. */
  values: JsonObject
  /** Records that its values name. */
  recordIds: readonly string[]
  /** Files attached in its fields. */
  files?: AttachedFile[]
  /** A check found that it names what is not there. */
  isDangling?: boolean
  /** It shares a value that only one may have. */
  isShared?: boolean
  /** What it is found by. */
  terms?: string[]
}

/** A value by the key of its field, whatever that is called: `constructor` is no value of an object without one. */
export const valueIn = (values: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(values, key) ? values[key] : undefined

/** The field that has a name now, else the one that had it before. */
export const fieldNamed = (fields: readonly StoredField[], named: string): StoredField | undefined =>
  fields.find(({ name }) => name === named) ?? fields.find(({ formerNames }) => formerNames?.includes(named))

/** Names of the fields of a type that the viewer's role hides; a field that was renamed stays hidden. */
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
/** Made once for rows of roles and types that are shared, which nobody can change. */
const ofRoles = new WeakMap<readonly PermissionDetail[], WeakMap<readonly StoredField[], ReadonlySet<string>>>()

/**
 * A record as a viewer may see it: values by the names that their fields have now, without those that the role hides.
 * Every way out of a record goes through here: reads, lists, live messages, webhooks, notifications, exports, the audit
 * log. Without a viewer nothing is hidden: that is for the service's own work.
 */
export const shownRecord = <R extends Row>(
  viewer: Restricted | undefined,
  type: DataTypeRow | undefined,
  row: R,
): R => {
  const kept = row.values as JsonObject
  const hidden = viewer === undefined || type === undefined ? undefined : hiddenOf(viewer, type)
  const values: JsonObject = {}
  for (const { _id, name } of type?.fields ?? [])
    if (Object.hasOwn(kept, _id) && hidden?.has(name) !== true) values[name] = kept[_id]
  return { ...withoutFiles(row), values }
}

/** Whether the records of a type that changed are being looked at again. Its fields stand beside, for the index of its records. */
export const CHECKS: TableDeclaration = { name: 'dataChecks', version: 1, equality: [] }

export interface CheckRow extends Row {
  /** Version of the type. */
  version: number
  primaryKey: string
  fields: StoredField[]
  isRunning: boolean
  /** ms since the epoch: writes that are logged until then may have been decided by what the type was before. */
  judgedUntil?: number
  /** Records of it share a value that only one may have. */
  hasShared?: boolean
}

/** The same for a record by itself. */
export const readRecord = async <R extends Row>(
  tables: Pick<TableStore, 'get'>,
  caller: UserCaller,
  row: R,
): Promise<R> => {
  if (row.values === undefined) return row
  const type = await tables.get<DataTypeRow>(DATA_TYPES, caller.organizationId, row.dataTypeId as string)
  return shownRecord(caller, type, row)
}
