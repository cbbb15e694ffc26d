import type { PermissionDetail } from './caller.ts'
import { Failure } from './errors.ts'
import type { Row } from './table.ts'

/** Which fields of a record a role can hide: those inside `member`, for each type of record by itself. */
export interface Restriction {
  /** The permission whose entries in `permissionDetails` count, such as `view/data`. */
  permission: string
  /** The field of a row that names its type, such as `dataTypeId`. */
  typeField: string
  /** The member of a row that holds the fields, such as `values`. */
  member: string
}

/** Fields of a person's record that are for themselves and for whoever has the permission. */
export interface Personal {
  permission: string
  fields: readonly string[]
}

/** Whose role is looked at. The service itself has no permissions: it sees all that no role hides. */
export interface Restricted {
  permissionDetails: readonly PermissionDetail[]
  permissions?: ReadonlySet<string>
  userId?: string
}

/** The personal fields that the role hides in the records of others. */
export const personalFields = (viewer: Restricted, personal: Personal | undefined): readonly string[] =>
  personal === undefined || viewer.permissions === undefined || viewer.permissions.has(personal.permission)
    ? []
    : personal.fields

/** The record without what is for others to see alone; one's own is whole. */
export const withoutPersonal = <R extends Row>(viewer: Restricted, personal: Personal | undefined, row: R): R => {
  const hidden = personalFields(viewer, personal)
  if (hidden.length === 0 || row._id === viewer.userId) return row
  return Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.includes(name))) as R
}

/** @throws Failure forbidden with `fields`, for a question that names some of the hidden ones. */
export const assertShown = (hidden: readonly string[], names: readonly string[]): void => {
  const fields = [...new Set(names)].filter((name) => hidden.includes(name))
  if (fields.length > 0)
    throw new Failure('forbidden', { message: `Your role hides ${fields.join(', ')}.`, extra: { fields } })
}

/** Names of the fields that the role hides in records of the type; without a type: in those of any. */
export const hiddenFields = (
  { permissionDetails }: Restricted,
  { permission }: Restriction,
  typeId?: string,
): ReadonlySet<string> =>
  new Set(
    permissionDetails
      .filter((entry) => entry.permissionName === permission && (typeId === undefined || entry.dataTypeId === typeId))
      .flatMap((entry) => entry.hiddenFields),
  )

/** The row as the role shows it. Every way out goes through here: REST, lists, exports, live messages, webhooks. */
export const withoutHidden = <R extends Row>(viewer: Restricted, restriction: Restriction | undefined, row: R): R => {
  if (restriction === undefined) return row
  const { typeField, member } = restriction
  const inner = row[member]
  if (typeof inner !== 'object' || inner === null) return row
  const hidden = hiddenFields(viewer, restriction, String(row[typeField]))
  if (hidden.size === 0) return row
  return { ...row, [member]: Object.fromEntries(Object.entries(inner).filter(([name]) => !hidden.has(name))) }
}

/**
 * Refuses a question (`fields`, a filter, a sort) that names a hidden field as `<member>.<name>`: its answer would tell
 * the value. @throws Failure forbidden with `fields`.
 */
export const assertNoneHidden = (
  viewer: Restricted,
  restriction: Restriction | undefined,
  names: readonly string[],
  typeId?: string,
): void => {
  if (restriction === undefined) return
  const hidden = hiddenFields(viewer, restriction, typeId)
  const prefix = `${restriction.member}.`
  assertShown(
    [...hidden],
    names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)),
  )
}
