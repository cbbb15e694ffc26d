/** Numbers that a seed repeats (xoshiro128**, Blackman and Vigna, public domain). */
export class Random {
  private a: number
  private b: number
  private c: number
  private d: number

  constructor(seed: number) {
    let state = seed | 0
    const mixed = (): number => {
      state = (state + 0x9e3779b9) | 0
      let word = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97)
      return word ^ (word >>> 15)
    }
    this.a = mixed()
    this.b = mixed()
    this.c = mixed()
    this.d = mixed() | 1 // never all zero
  }

  /** At least 0, below 1. */
  next(): number {
    const five = Math.imul(this.b, 5)
    const result = Math.imul((five << 7) | (five >>> 25), 9)
    const shifted = this.b << 9
    this.c ^= this.a
    this.d ^= this.b
    this.b ^= this.c
    this.a ^= this.d
    this.c ^= shifted
    this.d = (this.d << 11) | (this.d >>> 21)
    return (result >>> 0) / 4_294_967_296
  }

  /** A whole number from 0, below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }
}
