/** The file is no JSON, or not in the required form. */
export class ScanError extends Error {}

/** Position of a value in the file: its first byte, and the one after its last. */
export interface Span {
  from: number
  to: number
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d]
const BOM = [0xef, 0xbb, 0xbf]

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * Finds the features of a FeatureCollection in its bytes without parsing them: it follows only brackets and strings, so
 * a file takes no extra memory. The content of a feature is checked when it is parsed.
 */
export class FeatureScanner {
  private readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  /** Members of the top-level object. @throws ScanError if it is no object, after all previous members were yielded */
  *members(): Generator<{ key: Span; value: Span }, void> {
    const start = BOM.every((byte, i) => this.bytes[i] === byte) ? BOM.length : 0
    let at = this.expect(OPEN_OBJECT, this.space(start))
    for (let isFirst = true; !this.ends(CLOSE_OBJECT, at, isFirst); isFirst = false) {
      const key = this.value(isFirst ? this.space(at) : this.space(this.expect(COMMA, this.space(at))))
      if (this.bytes[key.from] !== QUOTE) throw this.unexpected(key.from)
      const value = this.value(this.space(this.expect(COLON, this.space(key.to))))
      yield { key, value }
      at = value.to
    }
    const end = this.space(this.expect(CLOSE_OBJECT, this.space(at)))
    if (end < this.bytes.length) throw this.unexpected(end)
  }

  /** Items of a list that is completely in the file. @throws ScanError */
  *items({ from }: Span): Generator<Span, void> {
    let at = this.expect(OPEN_LIST, from)
    for (let isFirst = true; !this.ends(CLOSE_LIST, at, isFirst); isFirst = false) {
      const item = this.value(isFirst ? this.space(at) : this.space(this.expect(COMMA, this.space(at))))
      yield item
      at = item.to
    }
  }

  isList({ from }: Span): boolean {
    return this.bytes[from] === OPEN_LIST
  }

  /** The value that begins at `from`. */
  private value(from: number): Span {
    const first = this.bytes[from]
    if (first === QUOTE) return { from, to: this.stringEnd(from) }
    if (first === OPEN_OBJECT || first === OPEN_LIST) return { from, to: this.bracketEnd(from) }
    let to = from
    while (to < this.bytes.length && !this.endsWord(this.bytes[to])) to++
    if (to === from) throw this.unexpected(from)
    return { from, to }
  }

  private endsWord(byte: number): boolean {
    return byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || byte === COLON || isSpace(byte)
  }

  private bracketEnd(from: number): number {
    const { bytes } = this
    for (let at = from, depth = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === QUOTE) at = this.stringEnd(at) - 1
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
      else if ((byte === CLOSE_OBJECT || byte === CLOSE_LIST) && --depth === 0) return at + 1
    }
    throw new ScanError('it ends in the middle of a value')
  }

  private stringEnd(from: number): number {
    const { bytes } = this
    for (let at = from + 1; at < bytes.length; at++) {
      if (bytes[at] === BACKSLASH) at++
      else if (bytes[at] === QUOTE) return at + 1
    }
    throw new ScanError('it ends in the middle of a text')
  }

  private ends(close: number, at: number, isFirst: boolean): boolean {
    const next = this.space(at)
    if (this.bytes[next] === close) return true
    if (!isFirst && this.bytes[next] !== COMMA) throw this.unexpected(next)
    return false
  }

  private expect(byte: number, at: number): number {
    if (this.bytes[at] !== byte) throw this.unexpected(at)
    return at + 1
  }

  private space(from: number): number {
    let at = from
    while (at < this.bytes.length && isSpace(this.bytes[at])) at++
    return at
  }

  private unexpected(at: number): ScanError {
    if (at >= this.bytes.length) return new ScanError('it ends too early')
    return new ScanError(`unexpected character at byte ${at}`)
  }
}
