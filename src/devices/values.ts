import { isDay } from './utc-time.ts'

export type Json = { [member: string]: unknown }

/** Undefined for anything but an object. */
export const objectOf = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined

export const objectsOf = (values: readonly unknown[]): Json[] =>
  values.flatMap((value) => {
    const object = objectOf(value)
    return object === undefined ? [] : [object]
  })

/** A number, also as text; undefined for anything else. */
export const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** A required coordinate or time: NaN, which the store refuses, where it is missing. */
export const requiredOf = (value: unknown): number => numberOf(value) ?? Number.NaN

/** Degrees and minutes of arc as degrees; NaN from 60 minutes on. */
export const degreesOf = (degrees: number, minutes: number): number =>
  minutes < 60 ? degrees + minutes / 60 : Number.NaN

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** A name; some clients write theirs as a number. */
export const nameOf = (value: unknown): string | undefined =>
  typeof value === 'number' ? String(value) : textOf(value)

export const boolOf = (value: unknown): boolean | undefined => {
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === '1' || value === 1) return true
  return value === 'false' || value === '0' || value === 0 ? false : undefined
}

/** Epoch numbers from here on are milliseconds, below it seconds: 2038, or 1970 in milliseconds. */
const MILLISECONDS_FROM = 2 ** 31
const WRITTEN = /^((\d{4})-(\d{2})-(\d{2}))[T ](\d{2}:\d{2}:\d{2})(\.\d{1,9})?\s*(?:(Z)|([+-]\d{2}):?(\d{2}))?$/i

/** ms since the epoch of seconds, milliseconds or a written time (UTC where it has no zone); NaN for anything else. */
export const timeOf = (value: unknown): number => {
  const number = numberOf(value)
  if (number !== undefined) return number >= MILLISECONDS_FROM ? number : number * 1000
  const parts = typeof value === 'string' ? WRITTEN.exec(value.trim()) : null
  if (parts === null) return Number.NaN
  const [, date, year, month, day, clock, fraction = '', , hours, minutes] = parts
  if (!isDay(Number(year), Number(month), Number(day))) return Number.NaN
  const zone = hours === undefined ? 'Z' : `${hours}:${minutes}`
  return Date.parse(`${date}T${clock}${fraction.slice(0, 4)}${zone}`)
}

/** Parses JSON of a client; undefined for invalid JSON. */
export const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  } catch {
    return undefined
  }
}

/** A scalar unchanged; undefined for lists and objects. */
export const scalarOf = (value: unknown): string | number | boolean | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
