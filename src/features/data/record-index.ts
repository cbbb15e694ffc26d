import type { Json, JsonObject } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { Row } from '../../kernel/table.ts'
import { wordsOf, wordStart } from '../../kernel/words.ts'
import { normalized } from '../../kernel/text.ts'
import { isEmpty, valueFault, type ValueType } from '../../kit/values/value-type.ts'
import { SLOTS, type StoredField } from './fields.ts'
import { valueIn } from './views.ts'

/*
 * Index of records of all types in one table. A value becomes a term (type, number of the field, value); a sortable
 * value also becomes the text of one of the sorted indexes, prefixed with the same type and number, so that the values
 * of one field are adjacent. So a new type or field needs no new table, and only its own records are indexed anew.
 */

/** Input of the index of a record. */
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

/** Characters of a text that determine its order. */
const SORTED_CHARS_MAX = 100

export const isFiltered = ({ type }: StoredField): boolean => FILTERED.includes(type)

export const isUnique = ({ primaryKey }: Pick<Shape, 'primaryKey'>, { name, unique }: StoredField): boolean =>
  unique === true || name === primaryKey

/** Members of a row that the indexes read. */
export const indexOf = (shape: Shape, values: JsonObject): Row => {
  const terms: string[] = []
  const words: string[] = []
  const index: Row = { terms, words }
  for (const field of shape.fields) {
    const value = valueIn(values, field._id)
    if (field.slot !== undefined) index[slotNames[field.slot]] = sortText(shape._id, field, value)
    if (isFiltered(field) && isEmpty(value)) terms.push(absentTermOf(shape._id, field))
    if (value === undefined || isEmpty(value)) continue
    if (isFiltered(field))
      for (const one of Array.isArray(value) ? value : [value]) terms.push(termOf(shape._id, field, one))
    if (isUnique(shape, field)) terms.push(uniqueTermOf(shape._id, field, value))
    if (typeof value === 'string' && field.type === 'text') words.push(value, taggedWords(shape._id, field, value))
  }
  return index
}

/** A letter that no language needs, so that only tagged searches find tagged words. */
const TAG = 'ꙮ'

/** Words of a text, prefixed with the type and number of its field so that a search can be limited to that field. */
const taggedWords = (dataTypeId: string, field: StoredField, value: string): string => {
  const { word: tag } = tagsOf(dataTypeId, field)
  return wordsOf(value)
    .map((word) => tag + word)
    .join(' ')
}

/** Word prefixes that find a search in the given fields: one group for each word. */
export const wordGroups = (
  q: string,
  fields: readonly { dataTypeId: string; field: StoredField }[],
): readonly (readonly string[])[] => {
  const tags = fields.map(({ dataTypeId, field }) => tagsOf(dataTypeId, field).word)
  // `wordsOf` would change neither a tag nor such a word.
  return wordsOf(q).map((word) => tags.map((tag) => wordStart(tag + word)))
}

/** Whether the values satisfy the rules of their type, as far as the values alone decide that. */
export const areValid = (shape: Shape, values: JsonObject): boolean =>
  shape.fields.every((field) => {
    const value = valueIn(values, field._id)
    if (value === undefined || isEmpty(value)) return field.required !== true && field.name !== shape.primaryKey
    return valueFault(field, value) === undefined
  })

export const termOf = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}=${comparable(field, value)}`

export const absentTermOf = (dataTypeId: string, field: StoredField): string => `${tagOf(dataTypeId, field)}!`

/** Scope within which a unique field's values are unique. */
export const claimKey = ({ _id }: { _id: string }, field: StoredField): string => `${_id}/${field._id}`

/** Term of a value that must be unique, ignoring case. */
export const uniqueTermOf = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}~${uniqueKey(value)}`

export const uniqueKey = (value: Json): string => normalized(String(value)).trim().toLowerCase()

/** Bounds of the sorted index that enclose the values of a field; rows without a value come first. */
export const sortBounds = (dataTypeId: string, field: StoredField): { from: string; to: string } => {
  const tag = tagOf(dataTypeId, field)
  return { from: `${tag} `, to: `${tag}"` }
}

/** Text to compare with the sorted index for a bound of a field's values. */
export const boundText = (dataTypeId: string, field: StoredField, value: Json): string =>
  `${tagOf(dataTypeId, field)}!${ordered(field, value)}`

const sortText = (dataTypeId: string, field: StoredField, value: Json | undefined): string =>
  isEmpty(value) ? `${tagOf(dataTypeId, field)} ` : boundText(dataTypeId, field, value as Json)

/** 22 characters of the type's id, and the number of the field in it. */
const tagOf = (dataTypeId: string, field: StoredField): string => tagsOf(dataTypeId, field).term

interface Tags {
  term: string
  word: string
}

/** Prefixes of the terms and words of a field: each record needs those of its fields some twenty times. */
const tagsOf = (dataTypeId: string, { no }: StoredField): Tags => {
  const known = ofTypes.get(dataTypeId) ?? new Map<number, Tags>()
  const tags = known.get(no)
  if (tags !== undefined) return tags
  const hex = dataTypeId.replaceAll('-', '').toLowerCase()
  const made = { term: `${Buffer.from(hex, 'hex').toString('base64url')}.${no}`, word: `${TAG}${hex}${TAG}${no}${TAG}` }
  ofTypes.set(dataTypeId, known.set(no, made))
  return made
}

const ofTypes = new RecentMap<string, Map<number, Tags>>(1_000)

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

/** 16 hexadecimal digits that sort like the numbers. */
const orderedNumber = (value: number): string => {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleBE(value === 0 ? 0 : value)
  if ((bytes[0] & 0x80) === 0) bytes[0] ^= 0x80
  else for (let i = 0; i < 8; i++) bytes[i] ^= 0xff
  return bytes.toString('hex')
}
