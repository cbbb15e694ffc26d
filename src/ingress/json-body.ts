import { isUtf8 } from 'node:buffer'
import { Failure, invalid } from '../kernel/errors.ts'

/** Arrays and objects inside each other; deeper text is refused before it is parsed, so that no recursion can be driven by it. */
const JSON_DEPTH_MAX = 32

/** @throws Failure `invalid` for what is no JSON, too deep, or names a prototype, unless `takesAnyNames`. */
export const parseJson = (bytes: Buffer, takesAnyNames = false): unknown => {
  if (!isUtf8(bytes)) throw new Failure('invalid', { message: 'The body is not UTF-8.' })
  if (isTooDeep(bytes))
    throw new Failure('invalid', { message: `The body nests deeper than ${JSON_DEPTH_MAX} levels.` })
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Failure('invalid', {
      message: `The body is not JSON: ${(error as Error).message}.`.slice(0, 200),
      cause: error,
    })
  }
  if (!takesAnyNames && mayNamePrototype(text)) refusePrototypes(value)
  return value
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

const isTooDeep = (bytes: Buffer): boolean => {
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfString(bytes, at)
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > JSON_DEPTH_MAX) return true
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return false
}

const endOfString = (bytes: Buffer, start: number): number => {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

/** Names may be written with escapes, so any escape of a letter or underscore counts as a suspicion. */
const mayNamePrototype = (text: string): boolean =>
  text.includes('"__proto__"') || text.includes('"prototype"') || text.includes('\\u00')

/** Such names would change what all objects inherit once a handler merges the value into another. */
const refusePrototypes = (value: unknown): void => {
  const waiting: { path: string; value: unknown }[] = [{ path: '', value }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [name, inner] of Object.entries(next.value)) {
      const path = `${next.path}/${name}`
      if (name === '__proto__') throw invalid(path, 'is not a known field')
      if (name === 'constructor' && typeof inner === 'object' && inner !== null && Object.hasOwn(inner, 'prototype'))
        throw invalid(path, 'is not a known field')
      waiting.push({ path, value: inner })
    }
  }
}
