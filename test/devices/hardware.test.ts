import { test, type Test } from 'tap'
import { crc16Ibm, crc16X25 } from '../../src/devices/crc.ts'
import { gt06 } from '../../src/devices/gt06/stream.ts'
import { h02 } from '../../src/devices/h02/stream.ts'
import { queclink } from '../../src/devices/queclink/stream.ts'
import { NotThisProtocol, type DeviceStream, type Said, type StreamProtocol } from '../../src/devices/stream.ts'
import { teltonika } from '../../src/devices/teltonika/stream.ts'
import { tk103 } from '../../src/devices/tk103/stream.ts'
import { checkFact, factsOf, type Fact } from './facts.ts'

interface Frame extends Fact {
  udp?: true
  count?: number
  type?: number
  serial?: number
  crc?: boolean
}

const NOW = Date.parse('2026-05-04T09:30:00Z')
const FRAMES_MIN = 30

const framesOf = (protocol: string): Frame[] => factsOf(protocol) as Frame[]
const bytesOf = ({ hex, text }: Frame): Buffer =>
  hex === undefined ? Buffer.from(text ?? '', 'latin1') : Buffer.from(hex, 'hex')
const pointsOf = (said: readonly Said[]) => said.flatMap((one) => (one.kind === 'points' ? one.points : []))
const answersOf = (said: readonly Said[]): string[] =>
  said.map((one) => (one.kind === 'login' ? one.accepted : one.answer)?.toString('hex') ?? '')

const hexOf = (byte = 0): string => byte.toString(16).padStart(2, '0')

/** The connection would be closed. */
const ends = (t: Test, run: () => unknown, what = 'it ends'): void => {
  try {
    run()
    t.fail(what)
  } catch (error) {
    t.ok(error instanceof NotThisProtocol, what, { error: String(error) })
  }
}

const IMEI = Buffer.from('000f333536333037303432343431303133', 'hex')
const LOGIN = Buffer.from('78780d01012345678901234500018cdd0d0a', 'hex')
const PROTOCOLS: { [name: string]: { stream: StreamProtocol; login: Buffer } } = {
  teltonika: { stream: teltonika, login: IMEI },
  gt06: { stream: gt06, login: LOGIN },
  h02: { stream: h02, login: Buffer.alloc(0) },
  queclink: { stream: queclink, login: Buffer.alloc(0) },
  tk103: { stream: tk103, login: Buffer.alloc(0) },
}

/** A connection that has logged in. */
const opened = (protocol: string): DeviceStream => {
  const { stream, login } = PROTOCOLS[protocol]
  const open = stream.open()
  open.push(login, NOW)
  return open
}

/** The frames of a protocol that stand for themselves and say something. */
const goodOf = (protocol: string): Frame[] =>
  framesOf(protocol).filter(({ udp, crc, type }) => udp !== true && crc !== false && type !== 1)

test('Teltonika: every record of the public suites, over TCP and UDP', async (t) => {
  const frames = framesOf('teltonika')
  t.ok(frames.length >= FRAMES_MIN, `${frames.length} frames`)
  for (const [i, frame] of frames.entries()) {
    const bytes = bytesOf(frame)
    const said =
      frame.udp === true ? (teltonika.readDatagram?.(bytes, NOW) ?? []) : opened('teltonika').push(bytes, NOW)
    if (frame.crc === false) {
      t.same(answersOf(said), ['00000000'], `frame ${i}: its checksum is wrong in the suite`)
      continue
    }
    checkFact(t, { points: pointsOf(said), name: (said[0] as { name?: string }).name }, frame, `frame ${i}`)
    const [answer] = answersOf(said)
    if (frame.udp === true)
      t.equal(answer, `0005${bytes.toString('hex', 2, 4)}01${bytes.toString('hex', 5, 6)}${hexOf(frame.count)}`)
    else t.equal(answer, `000000${hexOf(frame.count)}`, 'the number of records')
  }
  t.match(teltonika.open().push(IMEI, NOW), [{ kind: 'login', name: '356307042441013' }])
  t.same(opened('teltonika').push(Buffer.from([0xff, 0xff]), NOW), [], 'pings')
})

test('GT06: every position of the public suite, each answered with its type and number', async (t) => {
  const frames = framesOf('gt06')
  t.ok(frames.filter(({ points }) => points.length > 0).length >= FRAMES_MIN, `${frames.length} frames`)
  for (const [i, frame] of frames.entries()) {
    const said = opened('gt06').push(bytesOf(frame), NOW)
    if (frame.crc !== true) {
      t.same(said, [], `frame ${i}: a bad checksum is not answered`)
      continue
    }
    checkFact(t, { points: pointsOf(said) }, { points: frame.points }, `frame ${i} ${frame.hex}`)
    const [first] = said
    if (first === undefined || frame.type === 0x8a) continue
    if (first.kind === 'login') t.equal(first.name, frame.name?.padStart(15, '0').slice(-16))
    const expected = Buffer.from([
      0x05,
      frame.type as number,
      (frame.serial as number) >> 8,
      (frame.serial as number) & 0xff,
    ])
    const crc = crc16X25(expected).toString(16).padStart(4, '0')
    t.equal(answersOf(said)[0], `7878${expected.toString('hex')}${crc}0d0a`, `frame ${i}: its answer`)
  }
})

test('GT06: the zone of a login, the time that a device asks for, and nothing before a login', async (t) => {
  const framed = (body: string): Buffer => {
    const checked = Buffer.from(body, 'hex')
    const crc = Buffer.alloc(2)
    crc.writeUInt16BE(crc16X25(checked))
    return Buffer.concat([Buffer.from('7878', 'hex'), checked, crc, Buffer.from('0d0a', 'hex')])
  }
  // 0x320 is 8:00 east, in steps of 16; 26 = bit 3 set is west.
  const loginWith = (zone: string) => framed(`1101035951070000000036${'08'}${zone}0001`)
  const position = framed(
    '1f12' + '0b081d112e10' + 'cf' + '027ac7eb' + '0c465849' + '00' + '148f' + '01cc00287d001fb8' + '0003',
  )
  const timeAfter = (login: Buffer): number => {
    const stream = gt06.open()
    stream.push(login, NOW)
    return pointsOf(stream.push(position, NOW))[0].recordedAt
  }
  const utc = Date.parse('2011-08-29T17:46:16Z')
  t.equal(timeAfter(LOGIN), utc)
  t.equal(timeAfter(loginWith('3200')), utc - 8 * 3_600_000, 'eight hours east')
  t.equal(timeAfter(loginWith('3208')), utc + 8 * 3_600_000, 'eight hours west')
  // A message of wireless networks, as clones send it: no length that is true, and no checksum.
  for (const wrong of [
    '787800691709261259400700cc0400d376714600d37a3d5000d37a3c5a0d0a',
    '787803691604130318491475905b0d0a',
  ]) {
    const stream = opened('gt06')
    const said = stream.push(Buffer.concat([Buffer.from(wrong, 'hex'), position]), NOW)
    t.equal(pointsOf(said).length, 1, `what follows ${wrong} is heard`)
  }
  const [asked] = opened('gt06').push(framed('058a0006'), NOW)
  t.equal((asked as { answer: Buffer }).answer.toString('hex', 3, 10), '8a1a0504091e00', 'UTC')
  ends(t, () => gt06.open().push(position, NOW))
})

test('H02: every sentence and binary message of the public suite', async (t) => {
  const frames = framesOf('h02')
  t.ok(frames.filter(({ points }) => points.length > 0).length >= FRAMES_MIN, `${frames.length} messages`)
  for (const [i, frame] of frames.entries()) {
    const said = h02.open().push(bytesOf(frame), NOW)
    checkFact(t, { points: pointsOf(said) }, { points: frame.points }, `message ${i} ${frame.text ?? frame.hex}`)
    if (frame.points.length > 0) t.equal((said[0] as { name?: string }).name, frame.name)
  }
  const answerTo = (text: string): string =>
    Buffer.from(answersOf(h02.open().push(Buffer.from(text), NOW))[0], 'hex').toString()
  t.equal(
    answerTo('*HQ,4970105243,V1,104000,A,2235.1777,N,11357.8913,E,000.27,235,130721,FFFFFBFF#'),
    '*HQ,4970105243,V4,V1,20260504093000#',
  )
  t.equal(answerTo('*HQ,135790246811220,HTBT,100#'), '*HQ,135790246811220,HTBT,100#')
})

/** Reads bytes as they are cut; answers what was said, in a form that can be compared. */
const heardIn = (stream: DeviceStream, bytes: Buffer, pieceBytes: number): Said[] => {
  const said: Said[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes)
    said.push(...stream.push(bytes.subarray(at, at + pieceBytes), NOW))
  return said
}

const eachProtocol = async (t: Test, run: (t: Test, protocol: string) => void): Promise<void> => {
  for (const protocol of Object.keys(PROTOCOLS)) await t.test(protocol, async (t) => run(t, protocol))
}

test('cut anywhere, or several in one read: the same is heard', async (t) =>
  eachProtocol(t, (t, protocol) => {
    const frames = goodOf(protocol)
    for (const [i, frame] of frames.entries()) {
      const bytes = bytesOf(frame)
      const whole = heardIn(opened(protocol), bytes, bytes.length)
      t.same(heardIn(opened(protocol), bytes, 1), whole, `frame ${i} byte by byte`)
      for (let cut = 1; cut < Math.min(bytes.length, 200); cut++) {
        const stream = opened(protocol)
        const parts = [...stream.push(bytes.subarray(0, cut), NOW), ...stream.push(bytes.subarray(cut), NOW)]
        if (pointsOf(parts).length !== pointsOf(whole).length) t.same(parts, whole, `frame ${i} cut at ${cut}`)
      }
    }
    const several = Buffer.concat(frames.map(bytesOf))
    const one = frames.flatMap((frame) => opened(protocol).push(bytesOf(frame), NOW))
    for (const pieceBytes of [several.length, 7, 1000])
      t.equal(
        pointsOf(heardIn(opened(protocol), several, pieceBytes)).length,
        pointsOf(one).length,
        `pieces of ${pieceBytes}`,
      )
  }))

test('a bad checksum: nothing is taken, and the device is not told that it was', async (t) => {
  const [frame] = goodOf('teltonika')
  for (let at = 8; at < 40; at++) {
    const bytes = Buffer.from(bytesOf(frame))
    bytes[at] ^= 0x10
    const said = opened('teltonika').push(bytes, NOW)
    t.same(answersOf(said), ['00000000'], `byte ${at}`)
    t.equal(pointsOf(said).length, 0)
  }
  const gt = goodOf('gt06').find(({ points }) => points.length > 0) as Frame
  for (let at = 4; at < 20; at++) {
    const bytes = Buffer.from(bytesOf(gt))
    bytes[at] ^= 0x01
    t.same(opened('gt06').push(bytes, NOW), [], `byte ${at}`)
  }
  t.equal(crc16Ibm(Buffer.from('123456789')), 0xbb3d, 'the check value of CRC-16/ARC')
  t.equal(crc16X25(Buffer.from('123456789')), 0x906e, 'the check value of CRC-16/X-25')
})

test('lengths of 4 GB, counts that lie, and a megabyte of noise end the connection, within bounds', async (t) => {
  const huge = Buffer.from('00000000ffffffff08ff', 'hex')
  ends(t, () => opened('teltonika').push(huge, NOW))
  const lies = Buffer.from(bytesOf(goodOf('teltonika')[0]))
  lies[9] = 255
  const end = lies.length - 4
  lies.writeUInt32BE(crc16Ibm(lies.subarray(8, end)), end)
  ends(t, () => opened('teltonika').push(lies, NOW))
  for (const seed of [1, 2, 3, 4])
    for (const protocol of Object.keys(PROTOCOLS)) {
      const noise = Buffer.from(
        Uint8Array.from({ length: 1024 * 1024 }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 13) & 0xff),
      )
      let readBytes = 0
      const stream = opened(protocol)
      ends(
        t,
        () => {
          for (let at = 0; at < noise.length; at += 16_384) {
            readBytes = at
            t.equal(pointsOf(stream.push(noise.subarray(at, at + 16_384), NOW)).length, 0)
          }
        },
        `${protocol}: noise ${seed}`,
      )
      t.ok(readBytes <= 256 * 1024, `${protocol}: it gave up after ${readBytes} bytes`)
    }
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(3), Buffer.alloc(200, 0xff)])
    ends(t, () => teltonika.readDatagram?.(bytes, NOW))
})

test('without a fix: the last known place is no point, 0,0 is one that will be refused', async (t) => {
  const record = (lng: number, lat: number, satellites: number): Buffer => {
    const data = Buffer.alloc(2 + 24 + 6 + 1)
    data.set([0x08, 1])
    data.writeUInt32BE(400, 2)
    data.writeInt32BE(lng, 11)
    data.writeInt32BE(lat, 15)
    data[23] = satellites
    data[data.length - 1] = 1
    const frame = Buffer.alloc(8 + data.length + 4)
    frame.writeUInt32BE(data.length, 4)
    frame.set(data, 8)
    frame.writeUInt32BE(crc16Ibm(data), 8 + data.length)
    return frame
  }
  t.equal(pointsOf(opened('teltonika').push(record(210_000_000, 520_000_000, 0), NOW)).length, 0)
  t.match(pointsOf(opened('teltonika').push(record(0, 0, 0), NOW)), [{ lat: 0, lng: 0 }])
  t.match(pointsOf(opened('teltonika').push(record(210_000_000, 520_000_000, 5), NOW)), [{ lat: 52, lng: 21 }])
  t.equal(
    pointsOf(
      h02
        .open()
        .push(Buffer.from('*HQ,4970105243,V1,104000,V,2235.1777,N,11357.8913,E,000.27,235,130721,FFFFFBFF#'), NOW),
    ).length,
    0,
  )
})
