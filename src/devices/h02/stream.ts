import { ByteQueue } from '../byte-queue.ts'
import { datagramSaid, type DeviceStream, NotThisProtocol, type Said, type StreamProtocol } from '../stream.ts'
import { readBinary } from './binary.ts'
import { readSentence } from './sentence.ts'

const STAR = 0x2a
const DOLLAR = 0x24
const HASH = 0x23
/** Binary messages; some devices add a tail. */
const BINARY_BYTES = 32
const TAIL_BYTES = 13
const SENTENCE_BYTES_MAX = 2048
/** Noise between two messages beyond which a port receives another protocol. */
const NOISE_BYTES_MAX = 4096

/** H02: sentences `*HQ,…#` and binary messages `$…`, each with the id of the device. */
class H02Stream implements DeviceStream {
  private readonly queue = new ByteQueue()
  private noiseBytes = 0
  /** The last binary message ended with the received bytes: its tail may follow. */
  private mayHaveTail = false

  push(chunk: Uint8Array, now: number, said: Said[] = []): Said[] {
    this.queue.push(chunk)
    while (this.queue.length > 0) {
      const bytes = this.queue.peek()
      const begins = bytes[0] === STAR || bytes[0] === DOLLAR
      if (this.mayHaveTail && !begins) {
        if (bytes.length < TAIL_BYTES) break
        this.mayHaveTail = false
        this.queue.skip(TAIL_BYTES)
        continue
      }
      this.mayHaveTail = false
      const [length, message] = begins ? this.read(bytes, now) : [this.noiseIn(bytes)]
      if (length === 0) break
      this.queue.skip(length)
      if (message === undefined) continue
      this.noiseBytes = 0 // devices end their messages with a line end
      said.push(message)
    }
    return said
  }

  /** Length of the message at the beginning, in bytes, 0 while it is incomplete. */
  private read(bytes: Buffer, now: number): [number, Said?] {
    if (bytes[0] === STAR) {
      const end = bytes.indexOf(HASH)
      if (end < 0 && bytes.length > SENTENCE_BYTES_MAX) throw new NotThisProtocol('a sentence has no end')
      if (end < 0) return [0]
      return [end + 1, readSentence(bytes.toString('latin1', 1, end), now)]
    }
    if (bytes.length < BINARY_BYTES) return [0]
    const next = bytes[BINARY_BYTES]
    const hasTail = bytes.length >= BINARY_BYTES + TAIL_BYTES && next !== STAR && next !== DOLLAR
    this.mayHaveTail = bytes.length < BINARY_BYTES + TAIL_BYTES
    return [BINARY_BYTES + (hasTail ? TAIL_BYTES : 0), readBinary(bytes.subarray(0, BINARY_BYTES))]
  }

  private noiseIn(bytes: Buffer): number {
    const begin = bytes.findIndex((byte) => byte === STAR || byte === DOLLAR)
    const length = begin < 0 ? bytes.length : begin
    this.noiseBytes += length
    if (this.noiseBytes > NOISE_BYTES_MAX) throw new NotThisProtocol('this is no H02')
    return length
  }
}

export const h02: StreamProtocol = {
  open: () => new H02Stream(),
  readDatagram: (datagram, now) => datagramSaid(new H02Stream(), datagram, now),
}
