import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { request } from 'undici'
import {
  gt06Login,
  gt06Position,
  h02Sentence,
  type FramePoint,
  queclinkReport,
  teltonikaDatagram,
  teltonikaFrame,
  teltonikaLogin,
  teltonikaRecords,
  tk103Login,
} from './device-frames.ts'

/**
 * What a client still has to send, oldest first. It deletes what is acknowledged in the way of its protocol and sends
 * everything else again, until nothing is left or the test has ended.
 */
export interface Queue {
  places: FramePoint[]
  isOver(): boolean
}

const AGAIN_MS = 20
const DATAGRAM_AGAIN_MS = 500
const FRAME_RECORDS = 20
const BATCH_FEATURES = 50

const pause = (ms = AGAIN_MS): Promise<void> => new Promise((resume) => setTimeout(resume, ms))

/** Sends the oldest until `send` says how many were acknowledged. */
export const untilEmpty = async ({ places, isOver }: Queue, send: () => Promise<number>): Promise<void> => {
  while (places.length > 0 && !isOver()) {
    const sent = await send().catch(() => 0)
    if (sent > 0) places.splice(0, sent)
    else await pause()
  }
}

const post = (url: string, body: object) =>
  request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** One at a time, deleted on any 2xx: OwnTracks for Android, Traccar Client. Without a body it is a GET. */
export const sendOneByOne = (
  queue: Queue,
  messageOf: (place: FramePoint) => { url: string; body?: object },
): Promise<void> =>
  untilEmpty(queue, async () => {
    const { url, body } = messageOf(queue.places[0])
    const answer = await (body === undefined ? request(url) : post(url, body))
    await answer.body.dump()
    return answer.statusCode >= 200 && answer.statusCode < 300 ? 1 : 0
  })

/** Batches, deleted on `{"result":"ok"}` alone: Overland. */
export const sendInBatches = (queue: Queue, url: string, device: string): Promise<void> =>
  untilEmpty(queue, async () => {
    const batch = queue.places.slice(0, BATCH_FEATURES)
    const locations = batch.map(({ recordedAt, lat, lng }) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [lng, lat] },
      properties: { timestamp: new Date(recordedAt).toISOString(), device_id: device },
    }))
    const answer = await post(url, { locations })
    return (await answer.body.text()) === '{"result":"ok"}' ? batch.length : 0
  })

/** What a device sends next, and how it knows that this was taken. */
interface Message {
  bytes: Buffer | string
  places: number
  answer: { bytes: number; isAcknowledgement(heard: Buffer): boolean }
}

/** Over connections: after an answer that is none, and after its end, the device connects anew. */
const converse = (
  { places, isOver }: Queue,
  port: number,
  login: Message | undefined,
  next: () => Message,
): Promise<void> =>
  untilEmpty({ places, isOver }, async () => {
    await new Promise<void>((closed) => {
      const socket = connect(port, '127.0.0.1')
      let heard = Buffer.alloc(0)
      let message: Message | undefined
      const say = (what: Message | undefined): void => {
        message = what
        if (what === undefined || isOver()) socket.destroy()
        else socket.write(what.bytes)
      }
      socket.on('connect', () => say(login ?? next()))
      socket.on('data', (chunk) => {
        heard = Buffer.concat([heard, chunk])
        if (message === undefined || heard.length < message.answer.bytes) return
        if (!message.answer.isAcknowledgement(heard)) return void socket.destroy()
        heard = Buffer.alloc(0)
        places.splice(0, message.places)
        say(places.length > 0 ? next() : undefined)
      })
      socket.on('end', () => socket.destroy()) // Node never closes a socket that is reset while it ends
      socket.on('error', () => undefined)
      socket.on('close', () => closed())
    })
    return 0
  })

/** Frames over TCP, deleted when their number of records comes back. */
export const sendTeltonika = (queue: Queue, port: number, imei: string): Promise<void> => {
  const login: Message = {
    bytes: teltonikaLogin(imei),
    places: 0,
    answer: { bytes: 1, isAcknowledgement: (heard) => heard[0] === 1 },
  }
  return converse(queue, port, login, () => {
    const records = queue.places.slice(0, FRAME_RECORDS)
    const isAcknowledgement = (heard: Buffer): boolean => heard.readUInt32BE() === records.length
    return {
      bytes: teltonikaFrame(teltonikaRecords(records)),
      places: records.length,
      answer: { bytes: 4, isAcknowledgement },
    }
  })
}

/** One message at a time, deleted when an answer has its type and its serial number. */
export const sendGt06 = (queue: Queue, port: number, imei: string): Promise<void> => {
  let serial = 0
  const answerTo = (type: number, number: number): Message['answer'] => ({
    bytes: 10,
    isAcknowledgement: (heard) => heard[3] === type && heard.readUInt16BE(4) === number,
  })
  const login: Message = { bytes: gt06Login(imei, 1), places: 0, answer: answerTo(1, 1) }
  return converse(queue, port, login, () => {
    serial = (serial % 200) + 1
    return { bytes: gt06Position(queue.places[0], serial), places: 1, answer: answerTo(0x12, serial) }
  })
}

/** One sentence at a time, deleted on `V4`. */
export const sendH02 = (queue: Queue, port: number, id: string): Promise<void> => {
  const confirmation = `*HQ,${id},V4,V1,`
  const answer: Message['answer'] = {
    bytes: confirmation.length + '20260504093000#'.length,
    isAcknowledgement: (heard) => heard.toString().startsWith(confirmation),
  }
  return converse(queue, port, undefined, () => ({ bytes: h02Sentence(id, queue.places[0]), places: 1, answer }))
}

/** One report at a time, deleted when its count comes back: SACK is on. */
export const sendQueclink = (queue: Queue, port: number, imei: string): Promise<void> => {
  let number = 0
  return converse(queue, port, undefined, () => {
    number = (number % 0xffff) + 1
    const count = number.toString(16).toUpperCase().padStart(4, '0')
    const wanted = `+SACK:${count}$`
    const answer = { bytes: wanted.length, isAcknowledgement: (heard: Buffer) => heard.toString() === wanted }
    return { bytes: queclinkReport(imei, queue.places[0], count), places: 1, answer }
  })
}

/** One login with a place at a time, deleted on `AP05`. */
export const sendTk103 = (queue: Queue, port: number, id: string): Promise<void> => {
  const wanted = `(${id}AP05)`
  const answer = { bytes: wanted.length, isAcknowledgement: (heard: Buffer) => heard.toString() === wanted }
  return converse(queue, port, undefined, () => ({ bytes: tk103Login(id, queue.places[0]), places: 1, answer }))
}

/** Datagrams, sent again until one comes back with their number. */
export const sendTeltonikaDatagrams = async (queue: Queue, port: number, imei: string): Promise<void> => {
  const socket = createSocket('udp4')
  let hear: (answer: Buffer) => void = () => undefined
  socket.on('error', () => undefined)
  socket.on('message', (answer) => hear(answer))
  let packet = 0
  try {
    await untilEmpty(queue, async () => {
      packet = (packet % 200) + 1
      const records = queue.places.slice(0, FRAME_RECORDS)
      const answered = new Promise<number>((taken) => {
        hear = (answer) => answer[5] === packet && taken(answer[6])
      })
      socket.send(teltonikaDatagram(imei, packet, records), port, '127.0.0.1')
      const count = await Promise.race([answered, pause(DATAGRAM_AGAIN_MS).then(() => 0)])
      return count === records.length ? count : 0
    })
  } finally {
    socket.close()
  }
}
