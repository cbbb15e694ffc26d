import { FRAME_BYTES_MAX, NotThisProtocol } from './stream.ts'

const FIRST_BYTES = 2048
const NONE = Buffer.alloc(0)

/** Bytes of a connection that are no whole message yet. It holds no memory when empty: most connections are idle. */
export class ByteQueue {
  private buffer: Buffer = NONE
  private from = 0
  private to = 0

  get length(): number {
    return this.to - this.from
  }

  /** @throws NotThisProtocol when more waits than any message has */
  push(chunk: Uint8Array): void {
    if (this.length + chunk.byteLength > 2 * FRAME_BYTES_MAX) throw new NotThisProtocol('a message has no end')
    if (this.to + chunk.byteLength > this.buffer.byteLength) this.makeRoom(chunk.byteLength)
    this.buffer.set(chunk, this.to)
    this.to += chunk.byteLength
  }

  /** All waiting bytes; valid until the next call. */
  peek(): Buffer {
    return this.buffer.subarray(this.from, this.to)
  }

  skip(bytes: number): void {
    this.from += bytes
    if (this.from < this.to) return
    this.from = this.to = 0
    this.buffer = NONE
  }

  private makeRoom(bytes: number): void {
    const waiting = this.peek()
    const size = Math.max(FIRST_BYTES, 2 ** Math.ceil(Math.log2(waiting.byteLength + bytes)))
    const larger = Buffer.allocUnsafeSlow(size)
    larger.set(waiting)
    this.to = waiting.byteLength
    this.from = 0
    this.buffer = larger
  }
}
