import { unpackUntil } from './layout.ts'

/* Values in MessagePack, passed over without being unpacked. */

const NIL = 0xc0
const TRUE = 0xc3
/** From 0xca on: floats, unsigned numbers, those of 8 bytes (which nothing packs), signed ones. */
const NUMBER_BYTES = [4, 8, 1, 2, 4, undefined, 1, 2, 4]

/** End of the text, number, boolean or nil that begins there; -1 for a value of another kind. */
export const behindScalar = (bytes: Buffer, at: number): number => {
  const kind = bytes[at]
  if (kind < 0x80 || kind >= 0xe0 || (kind >= NIL && kind <= TRUE)) return at + 1
  if (kind >= 0xa0 && kind < NIL) return at + 1 + (kind & 0x1f)
  if (kind === 0xd9) return at + 2 + bytes[at + 1]
  if (kind === 0xda) return at + 3 + bytes.readUInt16BE(at + 1)
  const length = NUMBER_BYTES[kind - 0xca]
  return length === undefined ? -1 : at + 1 + length
}

/** End of the scalar, array or map that begins there; -1 where it is, or has, a value of another kind. */
const behindValue = (bytes: Buffer, at: number): number => {
  const kind = bytes[at]
  if (kind >= 0x80 && kind < 0x90) return behindValues(bytes, at + 1, 2 * (kind & 0xf))
  if (kind >= 0x90 && kind < 0xa0) return behindValues(bytes, at + 1, kind & 0xf)
  if (kind === ARRAY_16) return behindValues(bytes, at + 3, bytes.readUInt16BE(at + 1))
  if (kind === MAP_16) return behindValues(bytes, at + 3, 2 * bytes.readUInt16BE(at + 1))
  return behindScalar(bytes, at)
}

const ARRAY_16 = 0xdc
const MAP_16 = 0xde

const behindValues = (bytes: Buffer, from: number, count: number): number => {
  let at = from
  for (let left = count; left > 0 && at >= 0 && at < bytes.length; left -= 1) at = behindValue(bytes, at)
  return at
}

/** Unpacks objects without the members that nobody reads: indexes alone read most of a record. */
export class MemberReader {
  /** The names as they are packed, by their length. */
  private readonly names: Uint8Array[][] = []
  /** The packed object with the named members alone; the next one reuses it. */
  private part = new Uint8Array(4_096)

  constructor(members: readonly string[]) {
    for (const name of members) {
      const bytes = Buffer.from(name)
      this.names[bytes.length] = [...(this.names[bytes.length] ?? []), bytes]
    }
  }

  /** The object that lies between two places, whole if it is packed in an unusual way. */
  read<Value>(bytes: Buffer, from: number, end: number): Value {
    if (this.part.length < end - from) this.part = new Uint8Array(2 * (end - from))
    const partEnd = this.copy(bytes, from, end)
    return unpackUntil(this.part, partEnd ?? bytes.copy(this.part, 0, from, end))
  }

  private copy(bytes: Buffer, from: number, end: number): number | undefined {
    if (bytes[from] !== MAP_16) return undefined
    let [at, to, count] = [from + 3, 3, 0]
    let wantedFrom = at
    for (let left = bytes.readUInt16BE(from + 1); left > 0; left -= 1) {
      const valueAt = behindScalar(bytes, at)
      const behind = valueAt < 0 ? -1 : behindValue(bytes, valueAt)
      if (behind < 0 || behind > end) return undefined
      if (this.isWanted(bytes, at)) count += 1
      else {
        if (wantedFrom < at) to += bytes.copy(this.part, to, wantedFrom, at)
        wantedFrom = behind
      }
      at = behind
    }
    if (wantedFrom < at) to += bytes.copy(this.part, to, wantedFrom, at)
    this.part.set([MAP_16, count >> 8, count & 0xff])
    return to
  }

  /** Whether the name that begins there is asked for; one of over 31 bytes is taken to be. */
  private isWanted(bytes: Buffer, at: number): boolean {
    const kind = bytes[at]
    if (kind < 0xa0 || kind >= NIL) return true
    const named = this.names[kind & 0x1f]
    return named?.some((name) => isAt(bytes, at + 1, name)) === true
  }
}

const isAt = (bytes: Buffer, at: number, name: Uint8Array): boolean => {
  for (let i = 0; i < name.length; i += 1) if (bytes[at + i] !== name[i]) return false
  return true
}
