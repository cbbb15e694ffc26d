import { HAS_ACCURACY, HAS_ALTITUDE, HAS_ATTRIBUTES, HAS_BATTERY, HAS_HEADING, HAS_SPEED } from './events.ts'

export const HEADER_BYTES = 48
/** Flags of values with their own column. */
export const OPTIONAL = HAS_ACCURACY | HAS_ALTITUDE | HAS_SPEED | HAS_HEADING | HAS_BATTERY | HAS_ATTRIBUTES

/** Offsets of the parts of an encoded batch; absent parts have no length. */
export const layoutOf = (
  count: number,
  columns: number,
  wide: boolean,
  trackers: number,
  organizations: number,
  attributesBytes: number,
) => {
  let at = HEADER_BYTES
  const next = (bytes: number) => {
    const from = at
    at += bytes
    return from
  }
  const layout = {
    times: next(count * (wide ? 8 : 4)),
    lat: next(count * 4),
    lng: next(count * 4),
    accuracy: next(columns & HAS_ACCURACY ? count * 4 : 0),
    altitude: next(columns & HAS_ALTITUDE ? count * 4 : 0),
    speed: next(columns & HAS_SPEED ? count * 4 : 0),
    runs: next(trackers * 4),
    flags: next(count * 2),
    heading: next(columns & HAS_HEADING ? count * 2 : 0),
    organizationOf: next(trackers * 2),
    battery: next(columns & HAS_BATTERY ? count : 0),
    trackers: next(trackers * 16),
    organizations: next(organizations * 16),
    attributes: next(attributesBytes),
    end: 0,
  }
  layout.end = Math.ceil(at / 4) * 4
  return layout
}

export type Layout = ReturnType<typeof layoutOf>

/** Four interleaved FNV-1a sums over 32-bit words, so that none waits for the previous multiplication. */
export const checksum = (buffer: ArrayBuffer, start = 0, length = buffer.byteLength): number => {
  const words = new Int32Array(buffer, start, length / 4)
  let a = 0x811c9dc5
  let b = 0x12345678
  let c = 0x5bd1e995
  let d = 0x1b873593
  let i = 2
  for (; i + 3 < words.length; i += 4) {
    a = Math.imul(a ^ words[i], 0x01000193)
    b = Math.imul(b ^ words[i + 1], 0x01000193)
    c = Math.imul(c ^ words[i + 2], 0x01000193)
    d = Math.imul(d ^ words[i + 3], 0x01000193)
  }
  for (; i < words.length; i++) a = Math.imul(a ^ words[i], 0x01000193)
  let sum = a
  for (const other of [b, c, d]) sum = Math.imul(sum ^ other, 0x01000193)
  return (sum ^ (sum >>> 15)) >>> 0
}
