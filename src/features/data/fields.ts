import type { FieldError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { ruleFaults, VALUE_TYPES, type ValueRule, type ValueType } from '../../kit/values/value-type.ts'

export interface SentField extends ValueRule {
  /** Id of the field, if it is renamed. */
  _id?: string
  name: string
  label?: string
  unique?: boolean
}

export interface StoredField extends SentField {
  /** Key of its value in records: its first name, with a number if a removed field may have used that. Never reused. */
  _id: string
  /** Part of its terms in the index; never reused. */
  no: number
  /** Number of its sorted index. */
  slot?: number
  /** Former names: a field that a role hides stays hidden. */
  formerNames?: string[]
}

/** Records have no photos, signatures and barcodes: those are captured in tasks. */
const OF_TASKS: readonly ValueType[] = ['barcode', 'photo', 'signature']
export const FIELD_TYPES: readonly ValueType[] = VALUE_TYPES.filter((type) => !OF_TASKS.includes(type))

/** Types whose values have an order by which lists can be bounded. */
export const RANGED: readonly ValueType[] = ['number', 'date', 'time', 'datetime']
const SORTED: readonly ValueType[] = [...RANGED, 'text', 'option']
const UNIQUE: readonly ValueType[] = ['text', 'number', 'date', 'datetime', 'reference']
const KEYS: readonly ValueType[] = ['text', 'number']

/** Most fields of these types per data type: each has its own sorted index. */
const RANGED_MAX = 30
/** Most other fields that can be sorted by. */
const TEXTS_SORTED_MAX = 10
export const SLOTS = RANGED_MAX + TEXTS_SORTED_MAX

/** Faults of a type's fields and its primary key. `isKept` says which fields keep their pattern. */
export const fieldsFaults = (
  fields: readonly SentField[],
  primaryKey: string,
  isKept: (at: number) => boolean,
): FieldError[] => {
  const faults = fields.flatMap((_, i) => fieldFaults(fields, i, isKept(i)))
  if (fields.filter(({ type }) => RANGED.includes(type)).length > RANGED_MAX)
    faults.push({
      path: '/fields',
      message: `must have at most ${RANGED_MAX} fields of the types ${RANGED.join(', ')}`,
    })
  const key = fields.find(({ name }) => name === primaryKey)
  if (key === undefined) faults.push({ path: '/primaryKey', message: 'must be the name of a field' })
  else if (!KEYS.includes(key.type))
    faults.push({ path: '/primaryKey', message: `must be a field of the type ${KEYS.join(' or ')}` })
  return faults
}

const fieldFaults = (fields: readonly SentField[], at: number, isKept: boolean): FieldError[] => {
  const field = fields[at]
  const path = `/fields/${at}`
  const faults = ruleFaults(field, path, isKept)
  const isNamedBefore = fields.slice(0, at).some(({ name }) => name.toLowerCase() === field.name.toLowerCase())
  if (isNamedBefore) faults.push({ path: `${path}/name`, message: 'is the name of an earlier field' })
  if (field.unique === true && !UNIQUE.includes(field.type))
    faults.push({ path: `${path}/unique`, message: `is for ${UNIQUE.join(', ')} only` })
  return faults
}

/**
 * The fields to store: each is matched by `_id`, else by name, else by its index in the list if the field there has the
 * same type and no other name in the new list. So a renamed field keeps its values.
 */
export const keptFields = (
  sent: readonly SentField[],
  before: readonly StoredField[],
  lastNo: number,
): StoredField[] => {
  const taken = new Set<StoredField>()
  const claim = (field: StoredField | undefined): StoredField | undefined => {
    if (field === undefined || taken.has(field)) return undefined
    taken.add(field)
    return field
  }
  const byId = sent.map(({ _id }) => claim(_id === undefined ? undefined : before.find((one) => one._id === _id)))
  const byName = sent.map(({ name }, i) => byId[i] ?? claim(before.find((one) => one.name === name)))
  const was = sent.map(({ type }, i) => {
    if (byName[i] !== undefined) return byName[i]
    const same = before.length === sent.length && before[i].type === type ? before[i] : undefined
    return claim(same)
  })
  // Records still have values of a removed field, under a key that is no longer listed.
  const ids = new Set(before.map(({ _id }) => _id))
  let no = lastNo
  const kept = sent.map((field, i): StoredField => {
    const old = was[i]
    if (old !== undefined) return { ...field, _id: old._id, no: old.no, ...slotOf(old, field), ...namesOf(old, field) }
    no++
    const isNew = lastNo === before.length && !ids.has(field.name)
    return { ...field, _id: isNew ? field.name : `${field.name}~${no}`, no }
  })
  return withSlots(kept)
}

/** A field whose type changes starts without an index. */
const slotOf = (old: StoredField, { type }: SentField): { slot?: number } =>
  old.slot === undefined || old.type !== type ? {} : { slot: old.slot }

const namesOf = (old: StoredField, { name }: SentField): { formerNames?: string[] } => {
  const names = [...new Set([...(old.formerNames ?? []), old.name])].filter((one) => one !== name)
  return names.length === 0 ? {} : { formerNames: names }
}

const withSlots = (fields: readonly StoredField[]): StoredField[] => {
  const used = new Set(fields.map(({ slot }) => slot))
  const give = (wants: (field: StoredField) => boolean, from: number, to: number): Map<StoredField, number> => {
    const given = new Map<StoredField, number>()
    for (const field of fields) {
      if (field.slot !== undefined || !wants(field)) continue
      let slot = from
      while (slot < to && used.has(slot)) slot++
      if (slot === to) break
      used.add(slot)
      given.set(field, slot)
    }
    return given
  }
  const given = new Map([
    ...give(({ type }) => RANGED.includes(type), 0, RANGED_MAX),
    ...give(({ type }) => SORTED.includes(type) && !RANGED.includes(type), RANGED_MAX, SLOTS),
  ])
  return fields.map((field) => {
    const slot = given.get(field)
    return slot === undefined ? field : { ...field, slot }
  })
}

/** Whether records must be checked again for validity, or indexed again. */
export const changesRecords = (before: JsonObject, after: JsonObject): boolean =>
  JSON.stringify([before.fields, before.primaryKey]) !== JSON.stringify([after.fields, after.primaryKey])
