import type { Cell } from './table-cells.ts'

/** Kind of value that a number with this format shows. */
export type Shown = 'number' | 'date' | 'time' | 'datetime' | { zeros: number }

const DAY_MS = 86_400_000
const [DATES, TIMES, BOTH] = [
  [14, 15, 16, 17, 27, 28, 29, 30, 31, 34, 35, 36, 50, 51, 52, 53, 54, 57, 58],
  [18, 19, 20, 21, 32, 33, 45, 46, 47, 55, 56],
  [22],
]

/** By the number of a built-in format. */
export const shownByNumber = (id: number): Shown =>
  DATES.includes(id) ? 'date' : TIMES.includes(id) ? 'time' : BOTH.includes(id) ? 'datetime' : 'number'

/** By the code of a format, such as `dd/mm/yyyy` or `00000`. */
export const shownByCode = (code: string): Shown => {
  const [positive = ''] = code.split(';')
  const bare = positive
    .replace(/"[^"]*"|\\.|[_*]./g, '')
    .replace(/\[(?!h+\]|m+\]|s+\])[^\]]*\]/gi, '')
    .toLowerCase()
  if (/^0{2,}$/.test(bare)) return { zeros: bare.length }
  if (bare.includes('general') || !/[ymdhs]/.test(bare) || /[0#?]/.test(bare.replace(/s[.,]0+/g, ''))) return 'number'
  const hasTime = /[hs]/.test(bare)
  const hasDate = /[yd]/.test(bare) || (/m/.test(bare) && !hasTime)
  return hasTime ? (hasDate ? 'datetime' : 'time') : 'date'
}

/** A number of a cell as its format shows it. */
export const numberCell = (value: number, shown: Shown, is1904: boolean): Cell => {
  if (typeof shown === 'object')
    return Number.isInteger(value) && value >= 0 ? String(value).padStart(shown.zeros, '0') : value
  if (shown === 'number' || value < 0 || value > 2_958_466) return value
  // The 1900 system has a 29th of February that did not exist.
  const days = is1904 ? value + 1_462 : value < 60 ? value + 1 : value
  const ms = Math.round((days - 25_569) * DAY_MS)
  const text = new Date(ms).toISOString().slice(0, -1)
  const isMidnight = text.endsWith('T00:00:00.000')
  if (shown === 'time' && value < 1) return { at: text.slice(11).replace(/\.000$/, '') }
  return { at: shown === 'date' && isMidnight ? text.slice(0, 10) : text }
}
