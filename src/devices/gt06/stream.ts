import { ByteQueue } from '../byte-queue.ts'
import { crc16X25 } from '../crc.ts'
import { type DeviceStream, FRAME_BYTES_MAX, NotThisProtocol, type Said, type StreamProtocol } from '../stream.ts'
import { hasPosition, readPosition } from './position.ts'

const SHORT = 0x78
const LONG = 0x79
const END = Buffer.from('\r\n')
/** Longest frame with a wrong length, as some clones send it: the end is searched up to here. */
const LOST_BYTES_MAX = 2048

const LOGIN = 0x01
const TIME = 0x8a
/** Answers to commands: the device waits for nothing. */
const UNANSWERED = [0x15, 0x21, 0x80, 0x81, 0x82]

interface Frame {
  isLong: boolean
  type: number
  /** Between type and serial number. */
  content: Buffer
  serial: number
}

/** GT06 of Concox and many others: login by IMEI, then messages that are answered with their type and serial number. */
class Gt06Stream implements DeviceStream {
  private readonly queue = new ByteQueue()
  /** UTC unless the login names another one. */
  private zoneMs = 0
  private isKnown = false

  push(chunk: Uint8Array, now: number, said: Said[] = []): Said[] {
    this.queue.push(chunk)
    while (this.queue.length > 0) {
      const [bytes, frame] = readFrame(this.queue.peek())
      if (bytes === 0) break
      const message = frame && this.read(frame, now)
      this.queue.skip(bytes)
      if (message !== undefined) said.push(message)
    }
    return said
  }

  private read(frame: Frame, now: number): Said | undefined {
    const { type, content } = frame
    if (type === LOGIN) return this.login(frame)
    // A device must log in first.
    if (!this.isKnown) throw new NotThisProtocol('the device has not logged in')
    if (type === TIME) return { kind: 'answer', answer: answerTo(frame, timeOf(now)) }
    if (UNANSWERED.includes(type)) return undefined
    if (!hasPosition(type, content, frame.isLong)) return { kind: 'answer', answer: answerTo(frame) }
    return { kind: 'points', points: readPosition(type, content, this.zoneMs), answer: answerTo(frame) }
  }

  private login(frame: Frame): Said {
    const { content } = frame
    if (content.length < 8) throw new NotThisProtocol('this is no IMEI')
    const name = content.toString('hex', 0, 8).replace(/^0/, '')
    if (!/^\d{15,16}$/.test(name)) throw new NotThisProtocol('this is no IMEI')
    this.zoneMs = content.length >= 12 ? zoneOf(content.readUInt16BE(10)) : 0
    this.isKnown = true
    return { kind: 'login', name, accepted: answerTo(frame) }
  }
}

/** Hours and minutes as a decimal number, and whether it is west. */
const zoneOf = (bits: number): number => {
  const value = bits >> 4
  const minutes = Math.floor(value / 100) * 60 + (value % 100)
  if (minutes > 14 * 60) return 0
  return ((bits & 8) === 0 ? minutes : -minutes) * 60_000
}

/** Length of the first frame in bytes, 0 while it is incomplete; no frame where its checksum is wrong. */
const readFrame = (bytes: Buffer): [number, Frame?] => {
  if (bytes[0] !== SHORT && bytes[0] !== LONG) throw new NotThisProtocol('this is no frame of GT06')
  if (bytes.length > 1 && bytes[1] !== bytes[0]) throw new NotThisProtocol('this is no frame of GT06')
  if (bytes.length < 5) return [0]
  const isLong = bytes[0] === LONG
  const headBytes = isLong ? 4 : 3
  const length = isLong ? bytes.readUInt16BE(2) : bytes[2]
  if (length > FRAME_BYTES_MAX) throw new NotThisProtocol('a frame is too long')
  let end = headBytes + length
  if (bytes.length < end + 2) {
    // A frame that claims to be longer than it is would swallow the next ones.
    if (bytes.length < LOST_BYTES_MAX || length < LOST_BYTES_MAX) return [0]
    throw new NotThisProtocol('a frame has no end')
  }
  if (!bytes.subarray(end, end + 2).equals(END)) {
    end = bytes.indexOf(END, headBytes)
    if (end < 0 && bytes.length > LOST_BYTES_MAX) throw new NotThisProtocol('a frame has no end')
    if (end < 0) return [0]
  }
  return [end + 2, frameIn(bytes.subarray(0, end), headBytes, isLong)]
}

/** `bytes` end with the checksum. */
const frameIn = (bytes: Buffer, headBytes: number, isLong: boolean): Frame | undefined => {
  const end = bytes.length - 4
  if (end < headBytes + 1 || bytes.readUInt16BE(end + 2) !== crc16X25(bytes.subarray(2, end + 2))) return undefined
  const content = Buffer.from(bytes.subarray(headBytes + 1, end))
  return { isLong, type: bytes[headBytes], content, serial: bytes.readUInt16BE(end) }
}

const answerTo = ({ isLong, type, serial }: Frame, content: Uint8Array = NOTHING): Buffer => {
  const length = 5 + content.length
  const head = isLong ? [LONG, LONG, length >> 8, length & 0xff] : [SHORT, SHORT, length]
  const checked = Buffer.from([...head, type, ...content, serial >> 8, serial & 0xff])
  const crc = crc16X25(checked.subarray(2))
  return Buffer.concat([checked, Buffer.from([crc >> 8, crc & 0xff]), END])
}

const NOTHING = new Uint8Array()

const timeOf = (now: number): Uint8Array => {
  const date = new Date(now)
  return Uint8Array.of(
    date.getUTCFullYear() - 2000,
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
  )
}

export const gt06: StreamProtocol = { open: () => new Gt06Stream() }
