import { ByteQueue } from '../byte-queue.ts'
import { crc16Ibm } from '../crc.ts'
import type { DevicePoint } from '../point.ts'
import { type DeviceStream, FRAME_BYTES_MAX, NotThisProtocol, type Said, type StreamProtocol } from '../stream.ts'
import { CODEC_16, CODEC_8, CODEC_8_EXTENDED, readRecords } from './records.ts'

const PING = 0xff
const IMEI = /^\d{10,20}$/
const HEAD_BYTES = 8
const CRC_BYTES = 4
const RECORD_CODECS = [CODEC_8, CODEC_8_EXTENDED, CODEC_16]

const ACCEPTED = Buffer.from([1])
const REFUSED = Buffer.from([0])

/** Codec 8, 8 Extended and 16 over TCP: login by IMEI, then frames, each answered with the number of records taken. */
class TeltonikaStream implements DeviceStream {
  private readonly queue = new ByteQueue()

  push(chunk: Uint8Array, _now: number, said: Said[] = []): Said[] {
    this.queue.push(chunk)
    while (this.queue.length > 0) {
      const [bytes, message] = readMessage(this.queue.peek())
      if (bytes === 0) break
      this.queue.skip(bytes)
      if (message !== undefined) said.push(message)
    }
    return said
  }
}

/** Length of the first message in bytes, 0 while it is incomplete, and its content. */
const readMessage = (bytes: Buffer): [number, Said?] => {
  if (bytes[0] === PING) return [1]
  if (bytes.length < 2) return [0]
  const imeiBytes = bytes.readUInt16BE()
  if (imeiBytes > 0) return readLogin(bytes, imeiBytes)
  if (bytes.length < HEAD_BYTES) return [0]
  const length = bytes.readUInt32BE(4)
  if (bytes.readUInt32BE() !== 0 || length < 3 || length > FRAME_BYTES_MAX)
    throw new NotThisProtocol('this is no frame of Teltonika')
  const end = HEAD_BYTES + length
  if (bytes.length < end + CRC_BYTES) return [0]
  const data = bytes.subarray(HEAD_BYTES, end)
  return [end + CRC_BYTES, readFrame(data, bytes.readUInt32BE(end))]
}

const readLogin = (bytes: Buffer, imeiBytes: number): [number, Said?] => {
  if (imeiBytes > 20) throw new NotThisProtocol('this is no IMEI')
  if (bytes.length < 2 + imeiBytes) return [0]
  const name = bytes.toString('latin1', 2, 2 + imeiBytes)
  if (!IMEI.test(name)) throw new NotThisProtocol('this is no IMEI')
  return [2 + imeiBytes, { kind: 'login', name, accepted: ACCEPTED, refused: REFUSED }]
}

/** Another number than that of the records makes the device send them again. */
const readFrame = (data: Buffer, crc: number): Said | undefined => {
  if (crc !== crc16Ibm(data)) return { kind: 'answer', answer: countOf(0) }
  // Answers to commands, of codec 12 and 13, are not for us.
  if (!RECORD_CODECS.includes(data[0])) return undefined
  const { count, points } = recordsOf(data)
  return { kind: 'points', points, answer: countOf(count) }
}

const recordsOf = (data: Buffer): { count: number; points: DevicePoint[] } => {
  try {
    return readRecords(data)
  } catch (error) {
    if (error instanceof RangeError) throw new NotThisProtocol('a record is cut short')
    throw error
  }
}

const countOf = (count: number): Buffer => {
  const answer = Buffer.alloc(4)
  answer.writeUInt32BE(count)
  return answer
}

const DATAGRAM_HEAD_BYTES = 8

/** A datagram has length, packet id, and the IMEI before its records; it has no checksum but that of UDP. */
const readDatagram = (datagram: Buffer): Said[] => {
  if (datagram.length < DATAGRAM_HEAD_BYTES) throw new NotThisProtocol('this is no datagram of Teltonika')
  const packetId = datagram[5]
  const dataFrom = DATAGRAM_HEAD_BYTES + datagram.readUInt16BE(6)
  const name = datagram.toString('latin1', DATAGRAM_HEAD_BYTES, dataFrom)
  const data = datagram.subarray(dataFrom, 2 + datagram.readUInt16BE())
  if (!IMEI.test(name) || data.length < 3) throw new NotThisProtocol('this is no datagram of Teltonika')
  if (!RECORD_CODECS.includes(data[0])) return []
  const { count, points } = recordsOf(data)
  const answer = Buffer.from([0, 5, datagram[2], datagram[3], 1, packetId, count])
  return [{ kind: 'points', name, points, answer }]
}

export const teltonika: StreamProtocol = { open: () => new TeltonikaStream(), readDatagram }
