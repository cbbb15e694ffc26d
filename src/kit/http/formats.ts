import type { SchemaValidateFunction } from 'ajv'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import { endlessAt, TOO_LARGE } from '../../kernel/json.ts'
import { TIME_MS_MAX, TIME_MS_MIN } from '../../kernel/schema.ts'
import { keptText, textFault, type TextKind } from '../../kernel/text.ts'
import addFormatsModule from 'ajv-formats'

/** The package is CommonJS: its plugin is the module itself. */
const addStandardFormats = addFormatsModule as unknown as (
  target: Ajv2020,
  options: { mode: 'full'; formats: string[] },
) => void

/**
 * Keywords and formats beyond the standard. `x-text` limits a text to its kind (kernel/text.ts) and normalizes it in place, before its characters are counted; `x-names` does so with the names of
 * an object; `x-finite` refuses numbers of any depth that are too large; `x-commas` lets a query send an array as one text with commas. Formats: `date`, `email`, `uri`, `uuid` of any version, `date-time` (RFC 3339), `time-zone` (IANA), `language` (BCP 47), `currency` (ISO 4217).
 */
export const addFormats = (ajv: Ajv2020): void => {
  ajv.addKeyword('example')
  ajv.addKeyword('x-commas')
  const text = { keyword: 'x-text', type: 'string', before: 'maxLength', modifying: true, errors: true } as const
  ajv.addKeyword({ ...text, validate: checkText })
  ajv.addKeyword({ keyword: 'x-names', type: 'object', errors: true, validate: checkNames })
  ajv.addKeyword({ keyword: 'x-finite', type: 'object', errors: true, validate: checkFinite })
  addStandardFormats(ajv, { mode: 'full', formats: ['date', 'email', 'uri'] })
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i)
  ajv.addFormat('date-time', isDateTime)
  ajv.addFormat('time-zone', isTimeZone)
  ajv.addFormat('language', isLanguage)
  ajv.addFormat('currency', (code: string) => CURRENCIES.has(code))
}

const checkText: SchemaValidateFunction = (kind: TextKind, text: string, _schema, context): boolean => {
  const message = textFault(text, kind)
  if (message !== undefined) {
    checkText.errors = [{ keyword: 'x-text', params: {}, message }]
    return false
  }
  const kept = keptText(text, kind)
  if (kept !== text && context !== undefined) context.parentData[context.parentDataProperty] = kept
  return true
}

/** The names of an object; they are normalized where the value is kept. */
const checkNames: SchemaValidateFunction = (kind: TextKind, named: object): boolean => {
  const faults = Object.keys(named).map((name) => textFault(name, kind))
  const message = faults.find((fault) => fault !== undefined)
  checkNames.errors =
    message === undefined ? [] : [{ keyword: 'x-names', params: {}, message: `has a name that ${message}` }]
  return message === undefined
}

const checkFinite: SchemaValidateFunction = (_on: boolean, value: object, _schema, context): boolean => {
  const path = endlessAt(value)
  if (path === undefined) return true
  const instancePath = `${context?.instancePath ?? ''}${path}`
  checkFinite.errors = [{ keyword: 'x-finite', params: {}, instancePath, message: TOO_LARGE }]
  return false
}

const RFC_3339 =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

const isDateTime = (value: string): boolean => {
  if (!RFC_3339.test(value)) return false
  // Date.parse takes 31 February for 3 March.
  const lastDay = new Date(Date.UTC(Number(value.slice(0, 4)), Number(value.slice(5, 7)), 0)).getUTCDate()
  const at = Date.parse(value)
  return at >= TIME_MS_MIN && at <= TIME_MS_MAX && Number(value.slice(8, 10)) <= lastDay
}

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))
const LANGUAGES = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' })

/** A tag whose language has a name: by its form alone `xx` would pass. */
const isLanguage = (tag: string): boolean => {
  try {
    return LANGUAGES.of(new Intl.Locale(tag).language) !== undefined
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

const isTimeZone = (value: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
