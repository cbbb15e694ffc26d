import type { Cell } from './table-cells.ts'
import { westernDigits } from './western-digits.ts'

export type DateOrder = 'dmy' | 'mdy' | 'ymd'

/** How the texts of a column are to be read. */
export interface Convention {
  decimal: ',' | '.'
  dateOrder: DateOrder
}

interface Evidence {
  comma: number
  point: number
  dmy: number
  mdy: number
}

/** Conventions where the file does not tell. */
export interface ConventionDefaults {
  decimal: ',' | '.'
  dateOrder: DateOrder
}

const CURRENCY_WORDS = 'zł|Kč|kr\\.?|Ft|lei|Rs\\.?'
/** Signs of currencies, and those that are words; other words may be units, such as tonnes. */
export const CURRENCY = `[A-Z]{0,2}\\p{Sc}|${CURRENCY_WORDS}`
const NUMERIC = new RegExp(
  `^(?:[\\s\\p{Sc}A-Z(+-]|${CURRENCY_WORDS})*\\d[\\d.,'’\\s]*(?:[\\s\\p{Sc}A-Z%)-]|${CURRENCY_WORDS})*$`,
  'u',
)
const DATED = /^\s*(\d{1,2})\s?([./-])\s?(\d{1,2})\s?\2\s?(\d{2}|\d{4})(?!\d)/

/** Reads the texts of all columns to learn how numbers and dates are written in each. */
export class ConventionFinder {
  private readonly columns: Evidence[] = []

  see(cells: readonly Cell[]): void {
    for (const [i, cell] of cells.entries()) {
      if (typeof cell !== 'string' || cell.length > 60) continue
      const text = westernDigits(cell)
      if (!/\d/.test(text)) continue
      while (this.columns.length <= i) this.columns.push({ comma: 0, point: 0, dmy: 0, mdy: 0 })
      seeText(text, this.columns[i])
    }
  }

  end(columns: number, defaults: ConventionDefaults): Convention[] {
    const all: Evidence = { comma: 0, point: 0, dmy: 0, mdy: 0 }
    for (const one of this.columns) for (const key of Object.keys(all) as (keyof Evidence)[]) all[key] += one[key]
    const whole = { decimal: decimalOf(all) ?? defaults.decimal, dateOrder: orderOf(all) ?? defaults.dateOrder }
    return Array.from({ length: columns }, (_, i) => {
      const own = this.columns[i] ?? { comma: 0, point: 0, dmy: 0, mdy: 0 }
      return { decimal: decimalOf(own) ?? whole.decimal, dateOrder: orderOf(own) ?? whole.dateOrder }
    })
  }
}

const decimalOf = ({ comma, point }: Evidence): ',' | '.' | undefined =>
  comma > point ? ',' : point > comma ? '.' : undefined

const orderOf = ({ dmy, mdy }: Evidence): DateOrder | undefined => (dmy > mdy ? 'dmy' : mdy > dmy ? 'mdy' : undefined)

const seeText = (text: string, evidence: Evidence): void => {
  const date = DATED.exec(text)
  if (date !== null) {
    if (Number(date[1]) > 12) evidence.dmy++
    else if (Number(date[3]) > 12) evidence.mdy++
    return
  }
  if (!NUMERIC.test(text)) return
  const decimal = decimalIn(text.replace(/[^\d.,]/g, ''))
  if (decimal === ',') evidence.comma++
  if (decimal === '.') evidence.point++
}

/** The decimal sign, where the number shows it; `1,234` does not. */
const decimalIn = (digits: string): ',' | '.' | undefined => {
  const [comma, point] = [digits.lastIndexOf(','), digits.lastIndexOf('.')]
  if (comma >= 0 && point >= 0) return comma > point ? ',' : '.'
  if (comma < 0 && point < 0) return undefined
  const [sign, other] = comma >= 0 ? ([',', '.'] as const) : (['.', ','] as const)
  const [whole, ...parts] = digits.split(sign)
  if (parts.length > 1) return parts.every((part) => part.length === 3) ? other : undefined
  const isThousands = parts[0].length === 3 && whole.length >= 1 && whole.length <= 3 && !whole.startsWith('0')
  return isThousands ? undefined : sign
}
