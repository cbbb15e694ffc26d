import type { Json } from '../../kernel/json.ts'
import type { ValueRule } from '../values/value-type.ts'
import { type Convention, CURRENCY, type DateOrder } from './conventions.ts'
import { isWeekday, monthOf } from './date-words.ts'
import { type Cell, isBlank } from './table-cells.ts'
import { westernDigits } from './western-digits.ts'
import type { ZonedTime } from '../../kernel/zoned-time.ts'
import { normalized } from '../../kernel/text.ts'

/** A cell's value, or a description of the expected one. */
export type Understood = { value: Json | undefined } | { expected: string }

export interface Reading extends Convention {
  zone: ZonedTime
}

const YES = new Set(
  'true yes y x 1 ja j wahr oui vrai si sí sì sim tak ano áno igen da evet ναι да так نعم כן'.split(' '),
)
const NO = new Set('false no n 0 - nein falsch non faux não nie ne nem nu hayır όχι нет ні لا לא'.split(' '))

/** A cell as a value of a rule's type; the caller checks it against the rule. A blank cell is no value. */
export const understood = (cell: Cell | undefined, { type, options = [] }: ValueRule, reading: Reading): Understood => {
  if (cell === undefined || isBlank(cell)) return { value: undefined }
  if (typeof cell === 'object' && cell !== null && 'fault' in cell)
    return { expected: 'must have a value, not an error' }
  const filled = cell as Exclude<Cell, null | { fault: string }>
  switch (type) {
    case 'number':
      return numberOf(filled, reading)
    case 'boolean':
      return booleanOf(filled)
    case 'date':
    case 'time':
    case 'datetime':
      return momentOf(filled, type, reading)
    case 'coordinate':
      return placeOf(plainOf(filled))
    case 'option':
      return { value: optionOf(textOf(filled), options) }
    case 'options':
      return { value: optionsOf(textOf(filled), options) }
    default:
      return { value: textOf(filled) }
  }
}

/** Space, and embeddings and isolates of direction: address books put them around numbers, where nobody sees them. */
const EDGE = /[\s\u202a-\u202e\u2066-\u2069]/
const DIRECTIONS = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g

/** A cell as text: numbers without an exponent, dates as they are written in ISO 8601. */
export const textOf = (cell: Exclude<Cell, null | { fault: string }>): string => {
  if (typeof cell === 'object') return cell.at
  if (typeof cell !== 'string') return String(cell)
  let [from, to] = [0, cell.length]
  while (from < to && EDGE.test(cell[from])) from++
  while (to > from && EDGE.test(cell[to - 1])) to--
  return cell.slice(from, to)
}

/** The same of a number, date or place: in right-to-left files such marks stand within it too. */
const plainOf = (cell: Exclude<Cell, null | { fault: string }>): string =>
  westernDigits(textOf(cell).replace(DIRECTIONS, ''))

const numberOf = (cell: Exclude<Cell, null | { fault: string }>, { decimal }: Reading): Understood => {
  const value = typeof cell === 'string' ? parseNumber(plainOf(cell), decimal) : cell
  return Number.isFinite(value) ? { value: value as number } : { expected: 'must be a number' }
}

const PREFIX = new RegExp(`^([+-]?)(?:${CURRENCY}|[A-Z]{2,3}(?=[\\d.,+-]))`, 'u')
const SUFFIX = new RegExp(`(?:${CURRENCY}|(?<=\\d)[A-Z]{3})$`, 'u')
const IN_PARENTHESES = new RegExp(`^((?:${CURRENCY})?)\\((.*)\\)$`, 'u')
/** Thousands, which India groups by two digits from the second group on. */
const [POINTS, COMMAS] = ['\\d{1,3}(\\.\\d{3})+', '\\d{1,3}(,\\d{3})+|\\d{1,2}(,\\d{2})+,\\d{3}']
const GROUPED = {
  ',': new RegExp(`^(${POINTS}|\\d*)(,\\d*)?$`),
  '.': new RegExp(`^(${COMMAS}|\\d*)(\\.\\d*)?$`),
}

/** A number as people write it: with thousands, a currency, a percent sign, in parentheses where it is negative. */
export const parseNumber = (text: string, decimal: ',' | '.'): number | undefined => {
  const bare = normalized(text, 'NFKC')
    .replace(/[\s'’]/g, '')
    .replace(IN_PARENTHESES, '-$1$2')
    .replace(/−/g, '-')
    .replace(PREFIX, '$1')
    .replace(SUFFIX, '')
    .replace(/^(.*\d)-$/, '-$1')
  const [, sign, digits, exponent = '', percent] = /^([+-]?)([\d.,]+)(e[+-]?\d{1,3})?(%?)$/i.exec(bare) ?? []
  if (digits === undefined || !GROUPED[decimal].test(digits)) return undefined
  const plain = digits.replaceAll(decimal === ',' ? '.' : ',', '').replace(',', '.')
  if (!/\d/.test(plain)) return undefined
  return Number(`${sign}${plain}${percent === '%' ? 'e-2' : exponent}`)
}

const booleanOf = (cell: Exclude<Cell, null | { fault: string }>): Understood => {
  if (typeof cell === 'boolean') return { value: cell }
  const text = caseless(textOf(cell))
  if (YES.has(text)) return { value: true }
  return NO.has(text) ? { value: false } : { expected: 'must be true or false' }
}

const EXPECTED = {
  date: 'must be a date such as 2026-11-20',
  time: 'must be a time such as 14:30',
  datetime: 'must be a date with a time such as 2026-11-20 14:30',
}

const momentOf = (
  cell: Exclude<Cell, null | { fault: string }>,
  type: 'date' | 'time' | 'datetime',
  { dateOrder, zone }: Reading,
): Understood => {
  const expected = { expected: EXPECTED[type] }
  if (typeof cell === 'boolean') return expected
  if (typeof cell === 'number')
    return type === 'datetime' && Number.isInteger(cell) && cell > 1e11 ? { value: cell } : expected
  const parsed = parseMoment(plainOf(cell), dateOrder)
  if (parsed === undefined) return expected
  const { date, time, zone: own } = parsed
  if (type === 'time') return time === undefined ? expected : { value: time.slice(0, 8) }
  if (date === undefined) return expected
  if (type === 'date') return { value: date }
  if (own !== undefined) return { value: `${date}T${time ?? '00:00:00'}${own}` }
  const local = Date.parse(`${date}T${time ?? '00:00:00'}Z`)
  return Number.isNaN(local) ? expected : { value: new Date(zone.momentOf(local)).toISOString() }
}

interface Moment {
  date?: string
  time?: string
  zone?: string
}

const TIME =
  /(?:^|[T\s,]+)(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(\.\d{1,9})?)?\s*([ap])?\.?m?\.?\s*(Z|UTC|GMT|[+-](?:0\d|1[0-4])(?::?\d{2})?)?$/i
const MOMENT_CHARS_MAX = 100

/** A date, a time of day, or both; the order counts where only numbers stand. */
export const parseMoment = (said: string, order: DateOrder): Moment | undefined => {
  if (said.length > MOMENT_CHARS_MAX) return undefined
  const text = said.replace(/\s+/g, ' ')
  const digits = /^\d{13}$/.exec(text)
  if (digits !== null) return { ...split(new Date(Number(text)).toISOString()), zone: 'Z' }
  const found = TIME.exec(text)
  const isDateAlone = found !== null && /^\d{1,2}\.\d{2}\.\d{2,4}$/.test(text)
  const time = found === null || isDateAlone ? undefined : timeOf(found)
  if (found !== null && !isDateAlone && time === undefined) return undefined
  const rest = (time === undefined ? text : text.slice(0, found?.index)).trim()
  const zone = time === undefined ? undefined : zoneOf(found?.[6])
  // Beside a time alone, what looks like a zone ends a span: 08:00-12:00.
  if (rest === '') return time === undefined || zone !== undefined ? undefined : { time }
  const date = dateOf(rest, order)
  if (date === undefined) return undefined
  return { date, ...(time !== undefined && { time }), ...(zone !== undefined && { zone }) }
}

const split = (iso: string): Moment => ({ date: iso.slice(0, 10), time: iso.slice(11, -1) })

const zoneOf = (text: string | undefined): string | undefined =>
  text
    ?.toUpperCase()
    .replace(/^(UTC|GMT)$/, 'Z')
    .replace(/^([+-]\d{2}):?(\d{2})?$/, (_, hours: string, minutes = '00') => `${hours}:${minutes}`)

const timeOf = ([, hour, minute, second = '00', fraction = '', half]: RegExpExecArray): string | undefined => {
  let hours = Number(hour)
  if (half !== undefined) {
    if (hours < 1 || hours > 12) return undefined
    hours = (hours % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  }
  if (hours > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  return `${pad(hours)}:${minute}:${second}${fraction.slice(0, 4)}`
}

const NUMBERS = /^(\d{1,4}) ?[-./ ] ?(\d{1,2}) ?[-./ ] ?(\d{1,4})\.?$/
const NAME = '(\\p{L}{3,12})\\.?'
/** `12 de mayo de 2026`, `12 maja 2026 r.` */
const DAY_FIRST = new RegExp(
  `^(\\d{1,2})(?:st|nd|rd|th)?[-./\\s]*(?:de )?${NAME}[-./,\\s]*(?:de )?(\\d{2,4})(?: ?[rг]\\.?)?$`,
  'iu',
)
const MONTH_FIRST = new RegExp(`^${NAME}[-./\\s]*(\\d{1,2})(?:st|nd|rd|th)?[-./,\\s]+(\\d{2,4})$`, 'iu')
const YEAR_FIRST = new RegExp(`^(\\d{4})[-./\\s]*${NAME}[-./\\s]*(\\d{1,2})\\.?$`, 'iu')

const dateOf = (text: string, order: DateOrder): string | undefined => {
  const date = datePart(text, order)
  if (date !== undefined) return date
  // Only then: in some languages a Tuesday is cut to `Mar`.
  const [day, word] = /^(\p{L}+)\.?,?\s+/u.exec(text) ?? []
  return day !== undefined && isWeekday(word) ? datePart(text.slice(day.length), order) : undefined
}

const datePart = (bare: string, order: DateOrder): string | undefined => {
  const iso = /^(\d{4}) ?[-./] ?(\d{1,2}) ?[-./] ?(\d{1,2})\.?$/.exec(bare)
  if (iso !== null) return dayOf(iso[1], iso[2], iso[3])
  const packed = /^(\d{4})(\d{2})(\d{2})$/.exec(bare)
  if (packed !== null) return dayOf(packed[1], packed[2], packed[3])
  const numbers = NUMBERS.exec(bare)
  if (numbers !== null) {
    const [, a, b, c] = numbers
    if (order === 'ymd') return dayOf(a, b, c)
    return order === 'dmy' ? dayOf(c, b, a) : dayOf(c, a, b)
  }
  return namedDateOf(bare)
}

const namedDateOf = (text: string): string | undefined => {
  const dayFirst = DAY_FIRST.exec(text)
  if (dayFirst !== null) return dayOf(dayFirst[3], monthOf(dayFirst[2]), dayFirst[1])
  const monthFirst = MONTH_FIRST.exec(text)
  if (monthFirst !== null) return dayOf(monthFirst[3], monthOf(monthFirst[1]), monthFirst[2])
  const yearFirst = YEAR_FIRST.exec(text)
  return yearFirst === null ? undefined : dayOf(yearFirst[1], monthOf(yearFirst[2]), yearFirst[3])
}

/** Two digits of a year are of 1970 to 2069. */
const dayOf = (year: string, month: string | number, day: string): string | undefined => {
  if (year.length !== 4 && year.length !== 2) return undefined
  const whole = year.length === 4 ? Number(year) : Number(year) + (Number(year) < 70 ? 2000 : 1900)
  const at = new Date(Date.UTC(whole, Number(month) - 1, Number(day)))
  const isReal =
    at.getUTCFullYear() === whole && at.getUTCMonth() === Number(month) - 1 && at.getUTCDate() === Number(day)
  return isReal ? at.toISOString().slice(0, 10) : undefined
}

const pad = (value: number): string => String(value).padStart(2, '0')

const PLACE_CHARS_MAX = 100
const PLACES = [
  /^\(?\s*([+-]?\d{1,3}(?:\.\d+)?)\s*[,;\s]\s*([+-]?\d{1,3}(?:\.\d+)?)\s*\)?$/,
  /** With decimal commas: two numbers divided by anything but a comma. */
  /^\(?\s*([+-]?\d{1,3}(?:,\d+)?)\s*[;\s]\s*([+-]?\d{1,3}(?:,\d+)?)\s*\)?$/,
]

const placeOf = (said: string): Understood => {
  const text = said.slice(0, PLACE_CHARS_MAX + 1).replaceAll('−', '-')
  const found =
    text.length > PLACE_CHARS_MAX ? undefined : PLACES.map((one) => one.exec(text)).find((one) => one !== null)
  if (found === undefined) return { expected: 'must be a place such as 52.23, 20.98' }
  const [lat, lng] = found.slice(1).map((degrees) => Number(degrees.replace(',', '.')))
  return { value: { lat, lng } }
}

/** The option as it is declared, in any case and form of accents; an unknown one is left for the rule to refuse. */
const optionOf = (text: string, options: readonly string[]): string =>
  options.find((one) => one === text) ?? options.find((one) => caseless(one) === caseless(text)) ?? text

const caseless = (text: string): string => normalized(text).toLowerCase()

const optionsOf = (text: string, options: readonly string[]): string[] => {
  const whole = optionOf(text, options)
  if (options.includes(whole)) return [whole]
  return [...new Set(listed(text).map((part) => optionOf(part, options)))]
}

/** Parts of a cell that lists several: only one sign divides them, so that `a; b, c` are two, as exports write them. */
export const listed = (text: string): string[] => {
  const sign = text.includes(';') ? ';' : text.includes('|') ? '|' : text.includes('\n') ? '\n' : ','
  return text
    .split(sign)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
