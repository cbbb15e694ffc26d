/** Slots of one piece. */
const PIECE_BITS = 10
const PIECE_SLOTS = 1 << PIECE_BITS
const FIRST_SLOTS = 16

/** One buffer, as whole numbers and as doubles. */
export interface Piece {
  readonly ints: Int32Array
  readonly doubles: Float64Array
}

/**
 * Records of the same length by slot: what belongs to one slot stands together, so that it is found in one place of the
 * memory. They lie in pieces, so that growing never copies many; few of them take little.
 */
export class Records {
  private readonly pieces: Piece[] = []
  private readonly recordInts: number

  /** Length of a record in whole numbers; an even one, of which two may be a double. */
  constructor(recordInts: number) {
    this.recordInts = recordInts
  }

  /** The piece with the slot's record, which is made of zeros where it is new. Another one may replace it at the next call. */
  piece(slot: number): Piece {
    const number = slot >>> PIECE_BITS
    const known = this.pieces[number]
    if (known !== undefined && this.at(slot) < known.ints.length) return known
    return (this.pieces[number] = this.grown(known, slot))
  }

  /** Index of the slot's first whole number in its piece. */
  at(slot: number): number {
    return (slot & (PIECE_SLOTS - 1)) * this.recordInts
  }

  /** Makes the slot's record one of zeros. */
  clear(slot: number): void {
    const at = this.at(slot)
    this.piece(slot).ints.fill(0, at, at + this.recordInts)
  }

  /** Only the first piece begins small. */
  private grown(former: Piece | undefined, slot: number): Piece {
    let slots = slot < PIECE_SLOTS ? FIRST_SLOTS : PIECE_SLOTS
    while (slots <= (slot & (PIECE_SLOTS - 1))) slots *= 2
    const buffer = new ArrayBuffer(slots * this.recordInts * 4)
    const ints = new Int32Array(buffer)
    if (former !== undefined) ints.set(former.ints)
    return { ints, doubles: new Float64Array(buffer) }
  }
}
