import type { FieldError } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject } from '../../kernel/json.ts'
import {
  type Field,
  type Fields,
  integer,
  list,
  number,
  oneOf,
  optional,
  reference,
  text,
  TIME_MS_MAX,
  TIME_MS_MIN,
} from '../../kernel/schema.ts'
import { charsOf, keptText, normalized, textFault } from '../../kernel/text.ts'
import { parseTime } from '../http/parse-time.ts'
import { charsMaxOf, linearPattern, patternsFault } from './pattern.ts'

/** Types of the values that customers declare: fields of data types and components of flows. */
export const VALUE_TYPES = [
  'text',
  'barcode',
  'number',
  'boolean',
  'date',
  'time',
  'datetime',
  'coordinate',
  'option',
  'options',
  'reference',
  'photo',
  'file',
  'signature',
] as const

export type ValueType = (typeof VALUE_TYPES)[number]

export interface ValueRule {
  type: ValueType
  required?: boolean
  /** Smallest length of a text or barcode; smallest value of a number. */
  min?: number
  max?: number
  /** A part of the text must match it; RE2. */
  pattern?: string
  options?: string[]
  /** Data type of the record that a reference names. */
  dataTypeId?: string
  /** Largest number of photos, files or signatures. */
  filesMax?: number
  default?: Json
}

export const TEXT_CHARS_MAX = 10_000
const OPTIONS_MAX = 500
/** Largest number of files of a value whose rule has none. */
export const FILES_MAX = 50
const TEXTS: readonly ValueType[] = ['text', 'barcode']
const CHOICES: readonly ValueType[] = ['option', 'options']
export const FILES: readonly ValueType[] = ['photo', 'file', 'signature']

const anyValue: Field = { schema: { description: 'A value of the type.' } }

/** The members of a rule, for the body that declares it. */
export const ruleFields = (types: readonly ValueType[]): Fields => ({
  type: oneOf(...types),
  required: optional({ schema: { type: 'boolean' } }),
  min: optional(number({ min: -1e15, max: 1e15 })),
  max: optional(number({ min: -1e15, max: 1e15 })),
  pattern: optional(text({ max: 500 })),
  options: optional(list(text({ max: 100 }), { max: OPTIONS_MAX, min: 1, unique: true })),
  dataTypeId: optional({ ...reference('dataTypes'), reference: undefined }),
  filesMax: optional(integer({ min: 1, max: FILES_MAX })),
  default: optional(anyValue),
})

/** Whether the pattern costs a text the same as before. */
export const hasSamePattern = (rule: ValueRule, before: ValueRule | undefined): boolean =>
  before !== undefined && rule.pattern === before.pattern && rule.max === before.max

/**
 * The faults of a rule whose members have their types. `path` is that of the rule. The cost of the pattern is not
 * checked where it `isKept`: it was allowed before.
 */
export const ruleFaults = (rule: ValueRule, path: string, isKept = false): FieldError[] => {
  const faults: FieldError[] = []
  const refuse = (member: string, message: string): void => void faults.push({ path: `${path}/${member}`, message })
  const only = (member: keyof ValueRule, types: readonly ValueType[]): boolean => {
    if (rule[member] === undefined) return false
    if (types.includes(rule.type)) return true
    refuse(member, `is for ${types.join(', ')} only`)
    return false
  }
  const bounded: readonly ValueType[] = [...TEXTS, 'number']
  for (const member of ['min', 'max'] as const)
    if (only(member, bounded) && rule.type !== 'number' && !isLength(rule[member] as number))
      refuse(member, `must be a number of characters from 0 to ${TEXT_CHARS_MAX}`)
  if (rule.min !== undefined && rule.max !== undefined && rule.min > rule.max)
    refuse('max', 'must not be less than min')
  if (only('pattern', TEXTS)) {
    const fault = patternsFault([rule.pattern as string], isKept ? 0 : textCharsMax(rule))
    if (fault !== undefined) refuse('pattern', fault)
  }
  if (!only('options', CHOICES) && CHOICES.includes(rule.type)) refuse('options', 'is required')
  if (!only('dataTypeId', ['reference']) && rule.type === 'reference') refuse('dataTypeId', 'is required')
  only('filesMax', FILES)
  if (rule.default !== undefined && faults.length === 0) {
    const fault =
      FILES.includes(rule.type) || rule.type === 'reference' ? 'must be left out' : valueFault(rule, rule.default)
    if (fault !== undefined) refuse('default', fault)
  }
  return faults
}

/** Whether there is no value: an empty text or list is none. */
export const isEmpty = (value: Json | undefined): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** The reason why a value breaks its rule; undefined for none. Targets of references and files are not checked. */
export const valueFault = (rule: ValueRule, value: Json): string | undefined => {
  switch (rule.type) {
    case 'text':
    case 'barcode':
      return textValueFault(rule, value)
    case 'number':
      return numberFault(rule, value)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    case 'date':
      return isDate(value) ? undefined : 'must be a date such as 2026-11-20'
    case 'time':
      return typeof value === 'string' && TIME.test(value) ? undefined : 'must be a time such as 14:30 or 14:30:00'
    case 'datetime':
      return Number.isNaN(momentOf(value)) ? 'must be a time in RFC 3339 or epoch milliseconds' : undefined
    case 'coordinate':
      return isCoordinate(value) ? undefined : 'must be {lat: -90 to 90, lng: -180 to 180}'
    case 'option':
      return areOptions(rule, [value]) ? undefined : choiceFault(rule)
    case 'options':
      return areOptions(rule, value) ? undefined : `must be an array of different ones of ${shownOptions(rule)}`
    case 'reference':
      return isId(value) ? undefined : 'must be the id of a record'
    default:
      return fileIdsFault(rule, value)
  }
}

/** Files are attached by uploading them; a write may only leave some out. */
export const filesFault = ({ type }: ValueRule, value: Json, before: Json | undefined): string | undefined => {
  if (!FILES.includes(type)) return undefined
  const known = (before ?? []) as string[]
  return (value as string[]).every((id) => known.includes(id.toLowerCase()))
    ? undefined
    : 'names a file that was not attached'
}

export const keptValue = ({ type }: ValueRule, value: Json): Json => {
  if (type === 'text') return keptText(value as string, 'lines')
  if (CHOICES.includes(type)) return Array.isArray(value) ? value.map(nfc) : nfc(value)
  if (type === 'datetime') return new Date(momentOf(value)).toISOString()
  if (type === 'reference') return (value as string).toLowerCase()
  if (type === 'coordinate') return { lat: (value as JsonObject).lat, lng: (value as JsonObject).lng }
  return FILES.includes(type) ? (value as string[]).map((id) => id.toLowerCase()) : value
}

const textCharsMax = ({ max, pattern }: ValueRule): number =>
  max ?? (pattern === undefined ? TEXT_CHARS_MAX : charsMaxOf(pattern, TEXT_CHARS_MAX))

const isLength = (length: number): boolean => Number.isInteger(length) && length >= 0 && length <= TEXT_CHARS_MAX

const textValueFault = (rule: ValueRule, value: Json): string | undefined => {
  const { type, min = 0, pattern } = rule
  const max = textCharsMax(rule)
  if (typeof value !== 'string') return 'must be a text'
  const kind = type === 'text' ? 'lines' : 'key'
  const kept = keptText(value, kind)
  const length = charsOf(kept)
  if (length < min) return `must have at least ${min} characters`
  if (length > max) return `must have at most ${max} characters`
  const fault = textFault(kept, kind)
  if (fault !== undefined || pattern === undefined) return fault
  const matches = linearPattern(pattern)
  return typeof matches === 'function' && !matches(kept) ? `must match ${pattern}` : undefined
}

const numberFault = ({ min, max }: ValueRule, value: Json): string | undefined => {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number'
  if (min !== undefined && value < min) return `must be >= ${min}`
  return max !== undefined && value > max ? `must be <= ${max}` : undefined
}

const DATE = /^(\d{4})-(0[1-9]|1[0-2])-(\d{2})$/
const TIME = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const isDate = (value: Json): boolean => {
  const [, year, month, day] = (typeof value === 'string' && DATE.exec(value)) || []
  return (
    day !== undefined &&
    Number(day) >= 1 &&
    Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  )
}

const momentOf = (value: Json): number => {
  const at = typeof value === 'number' ? value : typeof value === 'string' ? parseTime(value) : Number.NaN
  return Number.isInteger(at) && at >= TIME_MS_MIN && at <= TIME_MS_MAX ? at : Number.NaN
}

const isCoordinate = (value: Json): boolean => {
  if (!isObject(value)) return false
  const { lat, lng, ...others } = value
  return isWithin(lat, 90) && isWithin(lng, 180) && Object.keys(others).length === 0
}

const isWithin = (value: Json | undefined, bound: number): boolean =>
  typeof value === 'number' && value >= -bound && value <= bound

const isId = (value: Json): boolean => typeof value === 'string' && ID.test(value)

const areOptions = ({ options = [] }: ValueRule, value: Json): boolean =>
  Array.isArray(value) &&
  new Set(value.map(nfc)).size === value.length &&
  value.every((one) => typeof one === 'string' && options.includes(nfc(one) as string))

const nfc = (value: Json): Json => (typeof value === 'string' ? normalized(value) : value)

const OPTIONS_SHOWN = 20

const shownOptions = ({ options = [] }: ValueRule): string =>
  `${options.slice(0, OPTIONS_SHOWN).join(', ')}${options.length > OPTIONS_SHOWN ? ', …' : ''}`

const choiceFault = (rule: ValueRule): string => `must be one of ${shownOptions(rule)}`

const fileIdsFault = ({ filesMax = FILES_MAX }: ValueRule, value: Json): string | undefined => {
  if (!Array.isArray(value) || !value.every(isId)) return 'must be an array of ids of files'
  if (new Set(value).size < value.length) return 'must name each file once'
  return value.length > filesMax ? `must be at most ${filesMax} files` : undefined
}
