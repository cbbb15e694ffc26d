import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from '../events.ts'
import { rowJson, wordsJson } from './point-json.ts'
import { sameTracker, trackerIdAt, type PointRows } from './point-rows.ts'

/** Most bytes of a row without its attributes. */
const ROW_BYTES_MAX = 512
/** Most bytes of a character of attributes in UTF-8. */
const CHARACTER_BYTES_MAX = 3
const ID_LENGTH = 36
const BASE36_DIGITS = 8
const FOUR_DIGITS = 36 ** 4
/** Place of the time in the head, after `{"_id":"<id>.`. */
const ID_AT = 8 + ID_LENGTH + 1
/** Times with that many digits in base 36, from 1972 to 2059: others are written as text. */
const TIME_MIN = 36 ** 7
const TIME_MAX = 36 ** 8
const MINUTE_MS = 60_000
const WORDS = TRIP_START | TRIP_FINISH

const ZERO = 48
const MINUS = 45
const POINT = 46
/** Units of a whole by its decimals. */
const SCALES = Int32Array.from({ length: 8 }, (_, places) => 10 ** places)
const encoder = new TextEncoder()
const BASE36 = encoder.encode('0123456789abcdefghijklmnopqrstuvwxyz')
const LNG = encoder.encode(',"lng":')
const ACCURACY = encoder.encode(',"accuracy":')
const ALTITUDE = encoder.encode(',"altitude":')
const SPEED = encoder.encode(',"speed":')
const HEADING = encoder.encode(',"heading":')
const BATTERY = encoder.encode(',"battery":')

/**
 * Writes rows of history as JSON, like `rowJson`, straight into bytes: the part of a row before its latitude differs
 * little between rows of a tracker, so it is copied and patched. It is most of the output for a tracker's day.
 */
export class PointJsonBytes {
  private bytes = new Uint8Array(64 * 1024)
  private at = 0
  /** Part of the previous row before its latitude. */
  private head: Uint8Array = new Uint8Array(0)
  private trackerId = ''
  private minute = Number.NaN

  /** Rows framed by `before` and `after`, with `between` between two; valid until the next call. */
  write(rows: PointRows, from: number, to: number, before: string, between: string, after: string): Uint8Array {
    this.at = 0
    this.reserve(before.length + after.length)
    this.ascii(before)
    for (let row = from; row < to; row++) {
      this.reserve(ROW_BYTES_MAX + rows.attributes[row].length * CHARACTER_BYTES_MAX + between.length + after.length)
      if (row > from) this.ascii(between)
      if (row === from || !sameTracker(rows, row - 1, rows, row)) this.begin(trackerIdAt(rows, row))
      this.row(rows, row)
    }
    this.ascii(after)
    return this.bytes.subarray(0, this.at)
  }

  private begin(trackerId: string): void {
    if (trackerId === this.trackerId) return
    this.trackerId = trackerId
    this.minute = Number.NaN
  }

  private row(rows: PointRows, row: number): void {
    const time = rows.recordedAt[row]
    if (!(time >= TIME_MIN && time < TIME_MAX)) return this.text(rowJson(rows, row, this.trackerId))
    this.setTime(time)
    this.bytes.set(this.head, this.at)
    this.at += this.head.length
    this.decimal(rows.lat[row], 7)
    this.copy(LNG)
    this.decimal(rows.lng[row], 7)
    const flags = rows.flags[row]
    if ((flags & HAS_ACCURACY) !== 0) this.member(ACCURACY, rows.accuracy[row], 2)
    if ((flags & HAS_ALTITUDE) !== 0) this.member(ALTITUDE, rows.altitude[row], 2)
    if ((flags & HAS_SPEED) !== 0) this.member(SPEED, rows.speed[row], 2)
    if ((flags & HAS_HEADING) !== 0) this.member(HEADING, rows.heading[row], 1)
    if ((flags & HAS_BATTERY) !== 0) this.member(BATTERY, rows.battery[row], 2)
    if ((flags & WORDS) !== 0 || rows.attributes[row] !== '') this.text(wordsJson(rows, row))
    this.bytes[this.at++] = 125 // }
  }

  /** Writes the time into the head: as digits of the id, and as RFC 3339. */
  private setTime(time: number): void {
    const minute = Math.floor(time / MINUTE_MS)
    if (minute !== this.minute) {
      this.minute = minute
      const start = new Date(minute * MINUTE_MS).toISOString().slice(0, 17)
      const id = this.trackerId
      this.head = encoder.encode(
        `{"_id":"${id}.${'0'.repeat(BASE36_DIGITS)}","trackerId":"${id}","recordedAt":"${start}00.000Z","lat":`,
      )
    }
    const { head } = this
    const high = Math.floor(time / FOUR_DIGITS)
    const low = (time - high * FOUR_DIGITS) | 0
    base36(head, ID_AT, high)
    base36(head, ID_AT + 4, low)
    const ms = time - minute * MINUTE_MS
    const seconds = (ms / 1000) | 0
    const thousandths = ms - seconds * 1000
    const end = head.length - '00.000Z","lat":'.length
    head[end] = ZERO + ((seconds / 10) | 0)
    head[end + 1] = ZERO + (seconds % 10)
    head[end + 3] = ZERO + ((thousandths / 100) | 0)
    head[end + 4] = ZERO + (((thousandths / 10) | 0) % 10)
    head[end + 5] = ZERO + (thousandths % 10)
  }

  private member(name: Uint8Array, value: number, places: number): void {
    this.copy(name)
    this.decimal(value, places)
  }

  /** Writes a 32-bit number in units of the last of `places` decimals as the shortest decimal. */
  private decimal(value: number, places: number): void {
    const { bytes } = this
    let { at } = this
    let left = value | 0
    if (left < 0) {
      bytes[at++] = MINUS
      left = -left | 0
    }
    const scale = SCALES[places]
    let whole = (left / scale) | 0
    let rest = (left - whole * scale) | 0
    let end = at + (whole < 10 ? 1 : whole < 100 ? 2 : whole < 1000 ? 3 : digitsOf(whole))
    const afterWhole = end
    while (end > at) {
      const tenth = (whole / 10) | 0
      bytes[--end] = ZERO + whole - tenth * 10
      whole = tenth
    }
    at = afterWhole
    if (rest !== 0) {
      bytes[at] = POINT
      let digits = places
      for (let tenth = (rest / 10) | 0; rest === tenth * 10; tenth = (rest / 10) | 0) {
        rest = tenth
        digits--
      }
      at += digits + 1
      for (let place = at; digits > 0; digits--) {
        const tenth = (rest / 10) | 0
        bytes[--place] = ZERO + rest - tenth * 10
        rest = tenth
      }
    }
    this.at = at
  }

  private text(text: string): void {
    this.at += encoder.encodeInto(text, this.bytes.subarray(this.at)).written
  }

  private ascii(text: string): void {
    for (let i = 0; i < text.length; i++) this.bytes[this.at++] = text.charCodeAt(i)
  }

  private copy(part: Uint8Array): void {
    for (let i = 0; i < part.length; i++) this.bytes[this.at++] = part[i]
  }

  private reserve(bytes: number): void {
    if (this.at + bytes <= this.bytes.length) return
    const larger = new Uint8Array(Math.max(this.at + bytes, this.bytes.length * 2))
    larger.set(this.bytes.subarray(0, this.at))
    this.bytes = larger
  }
}

/** Writes four digits in base 36. */
const base36 = (bytes: Uint8Array, at: number, value: number): void => {
  const high = (value / 1296) | 0
  const low = value - high * 1296
  const [first, third] = [(high / 36) | 0, (low / 36) | 0]
  bytes[at] = BASE36[first]
  bytes[at + 1] = BASE36[high - first * 36]
  bytes[at + 2] = BASE36[third]
  bytes[at + 3] = BASE36[low - third * 36]
}

const digitsOf = (value: number): number => {
  let digits = 1
  for (let bound = 10; value >= bound; bound *= 10) digits++
  return digits
}
