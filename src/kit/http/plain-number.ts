/** As JSON and people write numbers: 0x10, +5, .5, Infinity and blanks are none. */
const DECIMAL = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i
const WHOLE = /^-?\d+$/

/** The number that a text of a query says; NaN for every other text. */
export const plainNumber = (text: string): number => (DECIMAL.test(text) ? Number(text) : Number.NaN)

export const isPlainNumber = (text: string, type: 'integer' | 'number'): boolean =>
  (type === 'integer' ? WHOLE : DECIMAL).test(text)
