import { parseTime } from '../../../kit/http/parse-time.ts'

/** Powers of ten that a double holds exactly. */
const TENS = Float64Array.from({ length: 23 }, (_, power) => 10 ** power)
/** Digits for which a whole number, and one rounding of its quotient by a power of ten, equal `JSON.parse`. */
const DIGITS_MAX = 15
const TEXTS = 4096
const DAY_MS = 86_400_000

/** Reads the bytes of JSON without blanks. After the first unexpected byte, `hasFailed` stays true. */
export class JsonCursor {
  hasFailed = false
  private bytes: Uint8Array = new Uint8Array(0)
  private at = 0
  /** Cache of recent texts: ids recur, and a cached text needs no new string. */
  private readonly texts: string[] = new Array<string>(TEXTS).fill('')
  private day = -1
  private dayStart = 0

  open(bytes: Uint8Array): void {
    this.bytes = bytes
    this.at = 0
    this.hasFailed = false
  }

  isAtEnd(): boolean {
    return !this.hasFailed && this.at === this.bytes.length
  }

  skipByte(byte: number): boolean {
    if (this.bytes[this.at] !== byte) return false
    this.at++
    return true
  }

  /** Skips exactly these bytes, or stays. */
  skip(expected: Uint8Array): boolean {
    const { bytes, at } = this
    for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
    this.at = at + expected.length
    return true
  }

  /** The next two ASCII bytes as one 14-bit number. */
  nextTwo(): number {
    const first = this.bytes[this.at]
    const second = this.bytes[this.at + 1]
    return first < 128 && second < 128 ? (first << 7) | second : 0
  }

  number(): number {
    const { bytes } = this
    const start = this.at
    let at = start
    const isNegative = bytes[at] === 45
    if (isNegative) at++
    const first = at
    let whole = 0
    for (; isDigit(bytes[at]); at++) whole = whole * 10 + bytes[at] - 48
    // No digits, or a zero followed by more digits, is no JSON.
    if (at === first || (at - first > 1 && bytes[first] === 48)) return this.fail()
    let digits = at - first
    let decimals = 0
    if (bytes[at] === 46) {
      const point = at++
      for (; isDigit(bytes[at]); at++) whole = whole * 10 + bytes[at] - 48
      decimals = at - point - 1
      digits += decimals
      if (decimals === 0) return this.fail()
    }
    if ((bytes[at] | 32) === 101) return this.fail()
    this.at = at
    if (digits > DIGITS_MAX) return Number(this.ascii(start, at))
    return isNegative ? -(whole / TENS[decimals]) : whole / TENS[decimals]
  }

  /** A text of printable ASCII without escapes, with its quotes. */
  text(): string {
    const { bytes } = this
    if (!this.skipByte(34)) return this.failText()
    const start = this.at
    let at = start
    let hash = 0
    for (; bytes[at] !== 34; at++) {
      const byte = bytes[at]
      if (!(byte >= 32 && byte < 127) || byte === 92) return this.failText()
      hash = (Math.imul(hash, 31) + byte) | 0
    }
    this.at = at + 1
    const place = (hash ^ (hash >>> 12)) & (TEXTS - 1)
    const known = this.texts[place]
    if (known.length === at - start && this.isSame(known, start)) return known
    return (this.texts[place] = this.ascii(start, at))
  }

  /** A time: RFC 3339 in quotes, or milliseconds since the epoch, rounded to whole ones. */
  time(): number {
    if (this.bytes[this.at] !== 34) return Math.round(this.number())
    const isWhole = this.bytes[this.at + 21] === 34
    if (!isWhole && this.bytes[this.at + 25] !== 34) return this.otherTime()
    const start = this.at + 1
    const midnight = this.midnight(start)
    const time = this.timeOfDay(start, isWhole)
    if (Number.isNaN(midnight) || time < 0) return this.otherTime()
    this.at = start + (isWhole ? 21 : 25)
    return midnight + time
  }

  /** Milliseconds of `THH:MM:SSZ` or `THH:MM:SS.mmmZ` after the date; -1 for anything else. */
  private timeOfDay(start: number, isWhole: boolean): number {
    const { bytes } = this
    if (
      bytes[start + 10] !== 84 ||
      bytes[start + 13] !== 58 ||
      bytes[start + 16] !== 58 ||
      bytes[start + (isWhole ? 19 : 23)] !== 90
    )
      return -1
    const hour = this.two(start + 11)
    const minute = this.two(start + 14)
    const second = this.two(start + 17)
    if (hour > 23 || minute > 59 || second > 59) return -1
    const time = ((hour * 60 + minute) * 60 + second) * 1000
    if (isWhole) return time
    const tens = this.two(start + 20)
    const ones = bytes[start + 22] - 48
    return bytes[start + 19] === 46 && tens <= 99 && ones >= 0 && ones <= 9 ? time + tens * 10 + ones : -1
  }

  /** Start of the UTC day in the ten bytes; NaN if they are no date. */
  private midnight(start: number): number {
    const day = (this.two(start) * 100 + this.two(start + 2)) * 10_000 + this.two(start + 5) * 100 + this.two(start + 8)
    if (day !== this.day || this.bytes[start + 4] !== 45 || this.bytes[start + 7] !== 45) {
      this.dayStart = parseTime(`${this.ascii(start, start + 10)}T00:00:00Z`)
      this.day = this.dayStart % DAY_MS === 0 ? day : -1
    }
    return this.dayStart
  }

  /** Two digits; for anything else, a number too large for any part of a time. */
  private two(at: number): number {
    const tens = this.bytes[at] - 48
    const ones = this.bytes[at + 1] - 48
    return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : 1000
  }

  private otherTime(): number {
    const time = parseTime(this.text())
    return Number.isNaN(time) ? this.fail() : time
  }

  private isSame(text: string, start: number): boolean {
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== this.bytes[start + i]) return false
    return true
  }

  private ascii(from: number, to: number): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + from, to - from).toString('latin1')
  }

  private fail(): number {
    this.hasFailed = true
    return Number.NaN
  }

  private failText(): string {
    this.hasFailed = true
    return ''
  }
}

const isDigit = (byte: number): boolean => byte >= 48 && byte <= 57
