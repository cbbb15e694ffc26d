import type { Json, JsonObject } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import { wordsOf, wordStart } from '../../kernel/words.ts'
import { isEmpty, valueFault, type ValueType } from '../../kit/values/value-type.ts'
import { SLOTS, type StoredField } from './fields.ts'
import { valueIn } from './views.ts'

/*
 * How records of any type are found in one table. A value becomes a term (type, number of the field, value); a value that
 * has an order also becomes the text of one of the sorted indexes, behind the same type and number, so that the values of
 * one field stand together. A new type or field so needs no new table, and only its own records are indexed anew.
 */

/** What the index of a record follows. */
export interface Shape {
  _id: string
  primaryKey: string
  fields: readonly StoredField[]
}

export const slotNames: readonly string[] = Array.from({ length: SLOTS }, (_, i) => `s${i}`)

const FILTERED: readonly ValueType[] = [
  'text',
  'number',
  'boolean',
  'date',
  'time',
  'datetime',
  'option',
  'options',
  'reference',
]

/** Characters of a text that its order goes by. */
const SORTED_CHARS_MAX = 100

export const isFiltered = ({ type }: StoredField): boolean => FILTERED.includes(type)

/** Fields whose values only one record may have. */
export const isUnique = ({ primaryKey }: Pick<Shape, 'primaryKey'>, { name, unique }: StoredField): boolean =>
  unique === true || name === primaryKey

/** The members of a row that the indexes look at. */
export const indexOf = (shape: Shape, values: JsonObject): Row => {
  const terms: string[] = []
  const words: string[] = []
  const index: Row = { terms, words }
  for (const field of shape.fields) {
    const value = valueIn(values, field._id)
    if (field.slot !== undefined) index[slotNames[field.slot]] = sortText(shape._id, field, value)
    if (isFiltered(field) && isEmpty(value)) terms.push(absentTermOf(shape._id, field))
    if (value === undefined || isEmpty(value)) continue
    for (const one of isFiltered(field) ? [value].flat() : []) terms.push(termOf(shape._id, field, one as Json))
    if (isUnique(shape, field)) terms.push(uniqueTermOf(shape._id, field, value))
    if (typeof value === 'string' && field.type === 'text') words.push(value, taggedWords(shape._id, field, value))
  }
  return index
}

/** A letter that no language needs: what begins with it is found by those alone who ask with it. */
const TAG = 'ꙮ'

/** The words of a text behind the type and number of its field, so that they can be looked for in that field alone. */
const taggedWords = (dataTypeId: string, field: StoredField, value: string): string =>
  wordsOf(value)
    .map((word) => wordTagOf(dataTypeId, field) + word)
    .join(' ')

const wordTagOf = (dataTypeId: string, { no }: StoredField): string =>
  `${TAG}${dataTypeId.replaceAll('-', '').toLowerCase()}${TAG}${no}${TAG}`

/** The beginnings by which the words of a search are found in some fields: one group for each word. */
export const wordGroups = (
  q: string,
  fields: readonly { dataTypeId: string; field: StoredField }[],
): readonly (readonly string[])[] => {
  const tags = fields.map(({ dataTypeId, field }) => wordTagOf(dataTypeId, field))
  // Neither a tag nor such a word has anything that `wordsOf` would change.
  return wordsOf(q).map((word) => tags.map((tag) => wordStart(tag + word)))
}

/** Whether the values keep the rules of their type, as far as the values themselves can say. */
export const areValid = (shape: Shape, values: JsonObject): boolean =>
  shape.fields.every((field) => {
    const value = valueIn(values, field._id)
    if (value === undefined || isEmpty(value)) return field.required !== true && field.name !== shape.primaryKey
    return valueFault(field, value) === undefined
  })

/** The term under which a value of a field is found. */
export const termOf = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}=${comparable(field, value)}`

/** The term of records in which a field is empty. */
export const absentTermOf = (dataTypeId: string, field: StoredField): string => `${tagOf(dataTypeId, field)}!`

/** What a unique field's values are unique among. */
export const claimKey = ({ _id }: { _id: string }, field: StoredField): string => `${_id}/${field._id}`

/** The same for values that must differ, case aside. */
export const uniqueTermOf = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}~${uniqueKey(value)}`

export const uniqueKey = (value: Json): string => String(value).normalize('NFC').trim().toLowerCase()

/** Bounds of the sorted index between which the values of a field lie; rows without a value stand first. */
export const sortBounds = (dataTypeId: string, field: StoredField): { from: string; to: string } => {
  const tag = tagOf(dataTypeId, field)
  return { from: `${tag} `, to: `${tag}"` }
}

/** The text that a bound of a field's values is compared with. */
export const boundText = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}!${ordered(field, value)}`

const sortText = (dataTypeId: string, field: StoredField, value: Json | undefined): string =>
  isEmpty(value) ? `${tagOf(dataTypeId, field)} ` : boundText(dataTypeId, field, value as Json)

/** 22 characters of the type's id, and the number of the field in it. */
const tagOf = (dataTypeId: string, { no }: StoredField): string => {
  const known = shortIds.get(dataTypeId)
  const short = known ?? Buffer.from(dataTypeId.replaceAll('-', ''), 'hex').toString('base64url')
  if (known === undefined) shortIds.set(dataTypeId, short)
  return `${short}.${no}`
}

/** Each record needs that of its type some twenty times. */
const shortIds = new RecentMap<string, string>(1_000)

const comparable = ({ type }: StoredField, value: Json): string => {
  if (type === 'time' && typeof value === 'string') return wholeTime(value)
  return type === 'number' && value === 0 ? '0' : String(value)
}

const ordered = (field: StoredField, value: Json): string => {
  if (typeof value === 'number') return orderedNumber(value)
  return field.type === 'text' || field.type === 'option'
    ? String(value).toLowerCase().slice(0, SORTED_CHARS_MAX)
    : comparable(field, value)
}

const wholeTime = (time: string): string => (time.length === 5 ? `${time}:00` : time)

/** 16 hexadecimal digits that stand in the order of the numbers. */
const orderedNumber = (value: number): string => {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleBE(value === 0 ? 0 : value)
  if ((bytes[0] & 0x80) === 0) bytes[0] ^= 0x80
  else for (let i = 0; i < 8; i++) bytes[i] ^= 0xff
  return bytes.toString('hex')
}
