/** Numbers of points as text, several times as fast as the built-in conversions: exports consist of little else. */

const digits = (count: number, radix: number): string[] =>
  Array.from({ length: radix ** count }, (_, value) => value.toString(radix).padStart(count, '0'))

const DECIMAL_2 = digits(2, 10)
const DECIMAL_3 = digits(3, 10)
const DECIMAL_4 = digits(4, 10)
const BASE36_2 = digits(2, 36)
const BASE36_LOW = 36 ** 4

/** A whole number >= 0 in base 36; the upper digits of a time stay the same for half an hour. */
export const base36 = (value: number): string => {
  const high = Math.floor(value / BASE36_LOW)
  if (high === 0) return value.toString(36)
  if (high !== lastHigh) {
    lastHigh = high
    lastHighText = high.toString(36)
  }
  const low = value - high * BASE36_LOW
  return lastHighText + BASE36_2[Math.floor(low / 1296)] + BASE36_2[low % 1296]
}
let lastHigh = -1
let lastHighText = ''

/** RFC 3339 with milliseconds; the part before the seconds is cached between calls. */
export const timeText = (time: number): string => {
  const minute = Math.floor(time / 60_000)
  if (minute !== lastMinute) {
    lastMinute = minute
    lastPrefix = new Date(minute * 60_000).toISOString().slice(0, 17)
  }
  const ms = time - minute * 60_000
  return `${lastPrefix}${DECIMAL_2[Math.floor(ms / 1000)]}.${DECIMAL_3[ms % 1000]}Z`
}
let lastMinute = Number.NaN
let lastPrefix = ''

/** Degrees from units of 1e-7 degree: the shortest decimal, never with an exponent. */
export const degreesText = (e7: number): string => {
  const sign = e7 < 0 ? '-' : ''
  const value = Math.abs(e7)
  const whole = Math.floor(value / 1e7)
  const fraction = value - whole * 1e7
  if (fraction === 0) return `${sign}${whole}`
  const high = Math.floor(fraction / 10_000)
  const low = fraction - high * 10_000
  const text = DECIMAL_3[high] + DECIMAL_4[low]
  let end = 7
  while (text.charCodeAt(end - 1) === 48) end--
  return `${sign}${whole}.${end === 7 ? text : text.slice(0, end)}`
}
