import { isUtf8 } from 'node:buffer'
import { breathe } from '../kernel/breath.ts'
import { Failure, invalid } from '../kernel/errors.ts'

/** Depth of arrays and objects; deeper text is refused before it is parsed, so that it cannot drive any recursion. */
const JSON_DEPTH_MAX = 32
/** Text up to this is parsed at once, in about a millisecond; longer lists in pieces of this size. */
const PIECE_BYTES = 128 * 1024
/** One element of a list, and everything beside the lists of a body: neither can be parsed in pieces. */
const WHOLE_BYTES_MAX = 4 * 1024 * 1024
const SCAN_BYTES = 1024 * 1024

/**
 * @throws Failure `invalid` for invalid JSON, too deep JSON, or, unless `takesAnyNames`, JSON that names a prototype or
 * a member twice (JSON.parse takes the last one, others the first); `too_large`
 */
export const parseJson = (bytes: Buffer, takesAnyNames = false): unknown => {
  if (bytes.length > PIECE_BYTES) return parseInPieces(bytes, takesAnyNames)
  const scan = new ListScan(bytes)
  scan.until(bytes.length)
  const value = parsed(bytes, '', takesAnyNames)
  if (!takesAnyNames && membersOf(value) !== scan.members) throw namedTwice(namesTwice(bytes.toString('utf8')))
  return value
}

/** The event loop goes on while the lists of a large body are parsed: a list of the body itself, or of one of its members. */
const parseInPieces = async (bytes: Buffer, takesAnyNames: boolean): Promise<unknown> => {
  const first = bytes.find((byte) => byte > SPACE)
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) throw notJson('it begins with neither { nor [')
  const scan = new ListScan(bytes)
  for (let at = 0; at < bytes.length; at += SCAN_BYTES) {
    const pause = breathe()
    if (pause !== undefined) await pause
    scan.until(at + SCAN_BYTES)
  }
  const lists = scan.ended()
  // Instead of its elements, each list holds its own number.
  const rest: Buffer[] = []
  let end = 0
  for (const [i, list] of lists.entries()) {
    rest.push(bytes.subarray(end, list.from), Buffer.from(String(i)))
    end = list.to
  }
  const whole = parsed(Buffer.concat([...rest, bytes.subarray(end)]), '', takesAnyNames)
  let members = membersOf(whole)
  const elementsOf = async (marker: unknown, path: string): Promise<unknown[]> => {
    const elements: unknown[] = []
    for (const piece of lists[(marker as [number])[0]].pieces) {
      const pause = breathe()
      if (pause !== undefined) await pause
      const text = Buffer.concat([OPEN, bytes.subarray(piece.from, piece.to), CLOSE])
      const some = parsed(text, path, takesAnyNames, elements.length) as unknown[]
      if (some.length !== piece.elements) throw notJson('an element is missing')
      for (const element of some) elements.push(element)
      members += membersOf(some)
    }
    return elements
  }
  const body = whole as { [name: string]: unknown }
  const rootList = Array.isArray(whole) ? await elementsOf(whole, '') : undefined
  if (rootList === undefined)
    for (const [name, member] of Object.entries(body ?? {}))
      if (Array.isArray(member)) body[name] = await elementsOf(member, `/${name}`)
  if (!takesAnyNames && members !== scan.members) throw namedTwice('')
  return rootList ?? body
}

/** Members of all objects in a value: as many as there are colons in its text, unless an object has one twice. */
const membersOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value)
  let members = Array.isArray(value) ? 0 : inner.length
  for (const one of inner) if (typeof one === 'object') members += membersOf(one)
  return members
}

const namedTwice = (path: string): Failure =>
  path === ''
    ? new Failure('invalid', { message: 'An object of the body names a member twice.' })
    : invalid(path, 'is named twice')

/** The path of the first repeated member of an object, in text that is JSON. */
const namesTwice = (text: string): string => {
  const open: { path: string; names: Set<string> | undefined; at: string | number }[] = []
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[[\]{},]/g)) {
    const top = open.at(-1)
    if (token === '{' || token === '[') {
      const path = top === undefined ? '' : `${top.path}/${top.at}`
      open.push(token === '{' ? { path, names: new Set(), at: '' } : { path, names: undefined, at: 0 })
    } else if (token === '}' || token === ']') open.pop()
    else if (token === ',' && typeof top?.at === 'number') top.at++
    else if (token.endsWith(':') && top?.names !== undefined) {
      const name = JSON.parse(token.slice(0, -1)) as string
      if (top.names.has(name)) return `${top.path}/${name}`
      top.names.add(name)
      top.at = name
    }
  }
  return ''
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')

/** `first`: the index of the first element of a piece of a list. */
const parsed = (bytes: Buffer, path: string, takesAnyNames: boolean, first = 0): unknown => {
  if (bytes.length > WHOLE_BYTES_MAX)
    throw new Failure('too_large', { message: `One part of the body is larger than ${WHOLE_BYTES_MAX} bytes.` })
  if (!isUtf8(bytes)) throw new Failure('invalid', { message: 'The body is not UTF-8.' })
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw notJson((error as Error).message, error)
  }
  if (!takesAnyNames && mayNamePrototype(text)) refusePrototypes(value, path, first)
  return value
}

const notJson = (reason: string, cause?: unknown): Failure =>
  new Failure('invalid', { message: `The body is not JSON: ${reason}.`.slice(0, 200), cause })

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

interface List {
  /** The bytes between its brackets. */
  from: number
  to: number
  pieces: { from: number; to: number; elements: number }[]
}

/** Scans text once, measures how deep it nests, and finds the places where its lists can be cut. */
class ListScan {
  private readonly bytes: Buffer
  private readonly lists: List[] = []
  private list: List | undefined
  private pieceFrom = 0
  private elements = 0
  private depth = 0
  private isInString = false
  private at = 0
  /** Colons between a name and its value, as far as it went. */
  members = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** @throws Failure `invalid` */
  until(end: number): void {
    const { bytes } = this
    const stop = Math.min(end, bytes.length)
    let at = this.at
    for (; at < stop; at++) {
      if (this.isInString) {
        at = endOfString(bytes, at)
        this.isInString = at >= bytes.length
        continue
      }
      const byte = bytes[at]
      if (byte === QUOTE) this.isInString = true
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.open(byte, at)
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.close(byte, at)
      else if (byte === COLON) this.members++
      else if (byte === COMMA && this.list !== undefined && this.depth === this.listDepth) this.comma(at)
    }
    this.at = at
  }

  /** @throws Failure `invalid` for text that is not complete. */
  ended(): readonly List[] {
    if (this.depth !== 0 || this.isInString || this.list !== undefined) throw notJson('it ends too early')
    return this.lists
  }

  private isRootList = false

  private get listDepth(): number {
    return this.isRootList ? 1 : 2
  }

  private open(byte: number, at: number): void {
    if (++this.depth > JSON_DEPTH_MAX)
      throw new Failure('invalid', { message: `The body nests deeper than ${JSON_DEPTH_MAX} levels.` })
    if (this.depth === 1) this.isRootList = byte === OPEN_LIST
    if (byte !== OPEN_LIST || this.depth !== this.listDepth || this.list !== undefined) return
    this.list = { from: at + 1, to: at + 1, pieces: [] }
    this.pieceFrom = at + 1
    this.elements = 0
  }

  private close(byte: number, at: number): void {
    if (this.depth-- !== this.listDepth || this.list === undefined) return
    if (byte !== CLOSE_LIST) throw notJson('a list ends with a brace')
    const isEmpty = this.elements === 0 && this.list.pieces.length === 0 && isBlank(this.bytes, this.pieceFrom, at)
    if (!isEmpty) this.list.pieces.push({ from: this.pieceFrom, to: at, elements: this.elements + 1 })
    this.lists.push({ ...this.list, to: at })
    this.list = undefined
  }

  private comma(at: number): void {
    this.elements++
    if (at - this.pieceFrom < PIECE_BYTES) return
    this.list?.pieces.push({ from: this.pieceFrom, to: at, elements: this.elements })
    this.pieceFrom = at + 1
    this.elements = 0
  }
}

const isBlank = (bytes: Buffer, from: number, to: number): boolean => {
  for (let at = from; at < to; at++) if (bytes[at] > 0x20) return false
  return true
}

/** End of the string at `at`. */
const endOfString = (bytes: Buffer, start: number): number => {
  let at = start
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

/** Names may be written with escapes, so any escape of a letter or underscore counts as a suspicion. */
const mayNamePrototype = (text: string): boolean =>
  text.includes('"__proto__"') || text.includes('"prototype"') || text.includes('\\u00')

/** Such names would change the prototype of all objects once a handler merges the value into another. */
const refusePrototypes = (root: unknown, rootPath: string, first: number): void => {
  const waiting: { path: string; value: unknown; first: number }[] = [{ path: rootPath, value: root, first }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [name, inner] of Object.entries(next.value)) {
      const path = `${next.path}/${Array.isArray(next.value) ? Number(name) + next.first : name}`
      if (name === '__proto__') throw invalid(path, 'is not a known field')
      if (name === 'constructor' && typeof inner === 'object' && inner !== null && Object.hasOwn(inner, 'prototype'))
        throw invalid(path, 'is not a known field')
      waiting.push({ path, value: inner, first: 0 })
    }
  }
}
