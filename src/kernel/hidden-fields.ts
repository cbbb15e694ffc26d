import type { PermissionDetail } from './caller.ts'
import { Failure } from './errors.ts'
import type { Row } from './table.ts'

/** Fields of a person's record for themselves and for holders of the permission. */
export interface Personal {
  permission: string
  fields: readonly string[]
}

/** Permission details of the viewer's role. The service itself has no permissions: it sees all that no role hides. */
export interface Restricted {
  permissionDetails: readonly PermissionDetail[]
  permissions?: ReadonlySet<string>
  userId?: string
}

/** Whether the role hides fields of the type's records. */
export const hidesFields = ({ permissionDetails }: Restricted, dataTypeId: string | undefined): boolean =>
  permissionDetails.some(
    (entry) => entry.permissionName === 'view/data' && entry.dataTypeId === dataTypeId && entry.hiddenFields.length > 0,
  )

/** The personal fields that the role hides in the records of others. */
export const personalFields = (viewer: Restricted, personal: Personal | undefined): readonly string[] =>
  personal === undefined || viewer.permissions === undefined || viewer.permissions.has(personal.permission)
    ? []
    : personal.fields

/** The record without the fields that only others may see; the viewer's own record is whole. */
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
