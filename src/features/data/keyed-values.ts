import type { FieldError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { normalized } from '../../kernel/text.ts'
import { pick } from '../../kit/resource/pick.ts'
import type { StoredField } from './fields.ts'
import { type DataTypeRow, valueIn } from './views.ts'

/** Values by the keys of their fields, and faults of the names that they were sent by. */
export interface Keyed {
  kept: JsonObject
  faults: FieldError[]
}

export const keyed = (type: DataTypeRow, values: JsonObject): Keyed => {
  const names = new Map(type.fields.map((field) => [field.name, field]))
  const faults: FieldError[] = []
  const kept: JsonObject = {}
  for (const [name, value] of Object.entries(values)) {
    const field = names.get(normalized(name))
    if (field === undefined) faults.push({ path: `/values/${name}`, message: 'is not a field of this data type' })
    else if (Object.hasOwn(kept, field._id)) faults.push({ path: `/values/${name}`, message: 'is named twice' })
    else kept[field._id] = value
  }
  return { kept, faults }
}

/** Adds defaults for fields that are left out, except for those in `left`, which keep their values. */
export const withDefaults = (type: DataTypeRow, { kept, faults }: Keyed, left: readonly StoredField[] = []): Keyed => {
  const whole = { ...kept }
  for (const field of type.fields)
    if (field.default !== undefined && valueIn(kept, field._id) === undefined && !left.includes(field))
      whole[field._id] = field.default
  return { kept: whole, faults }
}

export const chosen = (values: JsonObject, fields: readonly StoredField[]): JsonObject =>
  pick(
    values,
    fields.map(({ _id }) => _id).filter((key) => Object.hasOwn(values, key)),
  )
