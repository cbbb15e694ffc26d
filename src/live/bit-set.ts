/** A set of small whole numbers that grows by itself: one bit each. */
export class BitSet {
  private words = new Uint32Array(4)

  has(at: number): boolean {
    const word = at >>> 5
    return word < this.words.length && (this.words[word] & (1 << (at & 31))) !== 0
  }

  /** Answers whether it was not there before. */
  add(at: number): boolean {
    const word = at >>> 5
    if (word >= this.words.length) this.grow(word)
    const bit = 1 << (at & 31)
    if ((this.words[word] & bit) !== 0) return false
    this.words[word] |= bit
    return true
  }

  delete(at: number): void {
    const word = at >>> 5
    if (word < this.words.length) this.words[word] &= ~(1 << (at & 31))
  }

  private grow(word: number): void {
    const words = new Uint32Array(Math.max(word + 1, this.words.length * 2))
    words.set(this.words)
    this.words = words
  }
}
