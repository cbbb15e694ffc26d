import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/**
 * A WebSocket client over a bare TCP socket: frames are made ahead by the caller and written as they are, so that the
 * generator costs little beside the service it drives (Node's own client stops at some 35,000 frames a second).
 */
export class RawSocket {
  private readonly socket: Socket
  private rest: Buffer = Buffer.alloc(0)
  private readonly onText: (text: string) => void
  onClose: (code: number) => void = () => {}
  private code = 1006

  private constructor(socket: Socket, onText: (text: string) => void) {
    this.socket = socket
    this.onText = onText
    socket.on('data', (chunk) => this.read(chunk))
    socket.on('close', () => this.onClose(this.code))
    socket.on('error', () => socket.destroy())
  }

  static open(
    port: number,
    path: string,
    bearer: string,
    onText: (text: string, socket: RawSocket) => void,
  ): Promise<RawSocket> {
    return new Promise((done, failed) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      const key = randomBytes(16).toString('base64')
      socket.once('error', failed)
      socket.once('connect', () =>
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer ${bearer}\r\n\r\n`,
        ),
      )
      socket.once('data', (head) => {
        const end = head.indexOf('\r\n\r\n')
        if (!head.toString('latin1', 0, 12).includes('101'))
          failed(new Error(`upgrade refused: ${head.toString('latin1', 0, 80)}`))
        const raw: RawSocket = new RawSocket(socket, (text) => onText(text, raw))
        done(raw)
        if (head.length > end + 4) raw.read(head.subarray(end + 4))
      })
    })
  }

  /** Writes bytes that are frames already. */
  write(frames: Buffer): void {
    this.socket.write(frames)
  }

  close(): void {
    this.socket.destroy()
  }

  private read(chunk: Buffer): void {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    let at = 0
    for (;;) {
      const frame = frameAt(bytes, at)
      if (frame === undefined) break
      if (frame.opcode === 1) this.onText(bytes.toString('utf8', frame.from, frame.to))
      if (frame.opcode === 9) this.socket.write(frameOf(bytes.subarray(frame.from, frame.to), 10))
      if (frame.opcode === 8 && frame.to - frame.from >= 2) this.code = bytes.readUInt16BE(frame.from)
      at = frame.to
    }
    this.rest = bytes.subarray(at)
  }
}

/** A masked client frame; the mask is zero, so the payload stands in it as it is. */
export const frameOf = (payload: Uint8Array, opcode = 1): Buffer => {
  const long = payload.length > 65_535 ? 10 : payload.length > 125 ? 4 : 2
  const frame = Buffer.alloc(long + 4 + payload.length)
  frame[0] = 0x80 | opcode
  if (long === 2) frame[1] = 0x80 | payload.length
  if (long === 4) frame[1] = 0x80 | 126
  if (long === 4) frame.writeUInt16BE(payload.length, 2)
  if (long === 10) frame[1] = 0x80 | 127
  if (long === 10) frame.writeBigUInt64BE(BigInt(payload.length), 2)
  frame.set(payload, long + 4)
  return frame
}

const frameAt = (bytes: Buffer, at: number): { opcode: number; from: number; to: number } | undefined => {
  if (bytes.length < at + 2) return undefined
  const short = bytes[at + 1] & 127
  const head = short === 126 ? 4 : short === 127 ? 10 : 2
  if (bytes.length < at + head) return undefined
  const length =
    short === 126 ? bytes.readUInt16BE(at + 2) : short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short
  if (bytes.length < at + head + length) return undefined
  return { opcode: bytes[at] & 15, from: at + head, to: at + head + length }
}
