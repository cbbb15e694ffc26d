import { test, type Test } from 'tap'
import { h02 } from '../../src/devices/h02/stream.ts'
import { queclink } from '../../src/devices/queclink/stream.ts'
import type { Said, StreamProtocol } from '../../src/devices/stream.ts'
import { tk103 } from '../../src/devices/tk103/stream.ts'
import { checkFact, factsOf } from './facts.ts'

const NOW = Date.parse('2026-05-04T09:30:00Z')
const FRAMES_MIN = 30

const heardBy = (protocol: StreamProtocol, text: string): Said[] =>
  protocol.open().push(Buffer.from(text, 'latin1'), NOW)
const pointsOf = (said: readonly Said[]) => said.flatMap((one) => (one.kind === 'points' ? one.points : []))
const answerOf = (one: Said | undefined): string | undefined =>
  (one?.kind === 'login' ? one.accepted : one?.answer)?.toString('latin1')
const answerTo = (protocol: StreamProtocol, text: string): string | undefined => answerOf(heardBy(protocol, text)[0])

const checkFacts = (t: Test, name: string, protocol: StreamProtocol): void => {
  const facts = factsOf(name)
  t.ok(facts.filter(({ points }) => points.length > 0).length >= FRAMES_MIN, `${facts.length} messages`)
  for (const fact of facts) {
    const { text = '' } = fact
    const said = heardBy(protocol, text)
    checkFact(t, { points: pointsOf(said), name: (said[0] as { name?: string })?.name }, fact, text)
    const datagram = protocol.readDatagram?.(Buffer.from(text, 'latin1'), NOW) ?? []
    t.equal(pointsOf(datagram).length, fact.points.length, `${text} as a datagram`)
  }
}

test('a place of 60 minutes of arc is none', async (t) => {
  const placeIn = (minutes: string): { [protocol: string]: number | undefined } => ({
    h02: pointsOf(
      heardBy(h02, `*HQ,4970105243,V1,104000,A,22${minutes}.1777,N,11357.8913,E,000.27,235,130721,FFFFFBFF#`),
    )[0]?.lat,
    'h02 without a dot': pointsOf(
      heardBy(h02, `*HQ,4970105243,V1,104000,A,22${minutes}1777,N,11357.8913,E,000.27,235,130721,FFFFFBFF#`),
    )[0]?.lat,
    'h02 in binary': pointsOf(
      h02
        .open()
        .push(
          Buffer.from(`24497010524310400013072122${minutes}177706113578913e000235fffffbff0000000000`, 'hex').subarray(
            0,
            32,
          ),
          NOW,
        ),
    )[0]?.lat,
    tk103: pointsOf(
      heardBy(tk103, `(088048003342BP05000088048003342210713A22${minutes}.9806N11404.9355E000.1104000323.87000000L0)`),
    )[0]?.lat,
  })
  for (const [protocol, lat] of Object.entries(placeIn('59'))) t.ok(Math.abs((lat as number) - 22.99) < 0.01, protocol)
  for (const [protocol, lat] of Object.entries(placeIn('60'))) t.ok(Number.isNaN(lat), protocol)
})

test('Queclink: every report of the public suite, in order where one has several', async (t) => {
  checkFacts(t, 'queclink', queclink)
  const [said] = heardBy(
    queclink,
    '+RESP:GTFRI,2C0204,867162020003125,GL300W,0,0,2,1,1.7,205,2867.0,-78.481127,-0.206828,20160215210433,0740,0000,7596,5891C,0.0,1,1.7,205,2867.0,-78.481127,-0.206828,20160215210503,0740,0000,7596,5891C,12.5,88,20160215210506,1E78$',
  )
  t.match(pointsOf([said]), [
    { recordedAt: Date.parse('2016-02-15T21:04:33Z'), battery: undefined },
    { recordedAt: Date.parse('2016-02-15T21:05:03Z'), battery: 0.88, attributes: { event: 'FRI', odometer: 12_500 } },
  ])
  t.equal(answerOf(said), '+SACK:1E78$', 'one answer for all')
})

test('Queclink: what a report says beside its place', async (t) => {
  const attributesIn = (text: string) => pointsOf(heardBy(queclink, text))[0]?.attributes
  t.match(
    attributesIn(
      '+RESP:GTFRI,060100,135790246811220,,,00,1,1,4.3,92,70.0,121.354335,31.222073,20090214013254,0460,0000,18d8,6141,00,2000.0,12345:12:36,,,80,220601,,,,20090214093254,11F0$',
    ),
    {
      odometer: 2_000_000,
      engineHours: 12345.21,
      ignition: true,
      motion: true,
      input1: true,
      input2: true,
      output1: true,
    },
  )
  const place = '1,4.3,92,70.0,121.354335,31.222073,20110214013254,0460,0000,18d8,6141,,20110214093254,0022$'
  t.match(attributesIn(`+RESP:GTSTT,110100,358688000000158,,22,${place}`), { ignition: true, motion: true })
  t.match(attributesIn(`+RESP:GTSTT,110100,358688000000158,,41,${place}`), { ignition: undefined, motion: false })
  t.match(attributesIn(`+BUFF:GTMPF,110100,358688000000158,,${place}`), { alarm: 'powerCut', event: 'MPF' })
  t.match(attributesIn(`+RESP:GTDIS,110100,358688000000158,,,20,1,${place}`), { input2: false })
  t.match(attributesIn(`+RESP:GTHBM,110100,358688000000158,,,10,1,${place}`), { alarm: 'hardBraking' })
  t.match(
    attributesIn(
      '+RESP:GTFRI,1F0301,862193022001432,WF0GXXGBBGBM26503,,14900,41,1,1,11.6,74,356.0,14.120023,50.167894,20181104080703,0230,0003,9B14,5891,00,74.1,,,,83,220000,799,7.3,,20181104080703,099B$',
    ),
    { vin: 'WF0GXXGBBGBM26503', odometer: 74_100 },
  )
})

test('Queclink: every report is acknowledged by its count, a heartbeat by its version too', async (t) => {
  t.equal(answerTo(queclink, '+ACK:GTHBD,1A0401,135790246811220,,20100214093254,11F0$'), '+SACK:GTHBD,1A0401,11F0$')
  t.equal(answerTo(queclink, '+RESP:GTPNA,710402,867292060140006,,2,20250516120427,0121$'), '+SACK:0121$')
  t.equal(answerTo(queclink, '+RESP:GTPNA,710402,,,2,20250516120427,0121$'), undefined, 'of nobody')
  const lost =
    '+RESP:GTTOW,1A0401,135790246811220,,0,0,1,0,0.0,0,0.0,0.000000,0.000000,20100214093254,,,,,,20100214093254,11F0$'
  t.match(pointsOf(heardBy(queclink, lost)), [{ lat: 0, lng: 0 }], '0,0 without a fix is one that will be refused')
})

test('TK103: every message of the public suite', async (t) => {
  checkFacts(t, 'tk103', tk103)
  const undated = pointsOf(
    heardBy(tk103, '(013612345678BO012061830A2934.0133N10627.2544E040.0080331309.6200000000L000770AD)'),
  )
  t.ok(Number.isNaN(undated[0].recordedAt), 'no month 18: it will be refused')
  t.match(undated[0].attributes, { alarm: 'sos', event: 'BO01' })
  const typed = (type: string) =>
    pointsOf(heardBy(tk103, `(013632651491,${type},040613,A,2234.0297N,11405.9101E,000.0,040137,178.48)`))[0].attributes
  t.match(typed('ZC13'), { alarm: 'powerCut' })
  t.match(typed('DW37'), { alarm: 'removing' })
  t.match(typed('DW36'), { ignition: false })
  const [inputs] = pointsOf(
    heardBy(tk103, '(012345678901BR00130520A3439.9629S05826.3504W000.1175622323.8711788000L000450AC-004.5)'),
  )
  t.match(inputs.attributes, { charging: false, ignition: true, input2: true, output2: true, door: true })
  t.match(inputs.attributes, { alarm: 'sos', temperature1: -4.5 })
})

test('TK103: a handshake and a login are answered, and free text may have parentheses', async (t) => {
  t.equal(answerTo(tk103, '(087073005534BP00HSO)'), '(087073005534AP01HSO)')
  t.equal(
    answerTo(tk103, '(088048003342BP05354188048003342150917A1352.9801N10030.9050E000.0103115265.5600010000L000003F9)'),
    '(088048003342AP05)',
  )
  t.equal(
    answerTo(tk103, '(088048003342BR00150917A1352.9801N10030.9050E000.0103224000.0000010000L000003F9)'),
    undefined,
  )
  const said = heardBy(tk103, '(864555555555555,ZC03,191117,234207,$1) On (default)$)(087073005534BP00HSO)')
  t.match(said, [{ name: '864555555555555' }, { name: '087073005534' }])
})

test('line ends between messages are no noise, however many', async (t) => {
  const messages: [StreamProtocol, string][] = [
    [h02, '*HQ,135790246811220,HTBT,100#\r\n'],
    [queclink, '+ACK:GTHBD,1A0401,135790246811220,,20100214093254,11F0$\r\n'],
    [tk103, '(087073005534BP00HSO)\r\n'],
  ]
  for (const [protocol, message] of messages) {
    const stream = protocol.open()
    let heard = 0
    for (let i = 0; i < 5_000; i++) heard += stream.push(Buffer.from(message), NOW).length
    t.equal(heard, 5_000, message)
  }
  const stream = tk103.open()
  t.throws(() => {
    for (let i = 0; i < 5_000; i++) stream.push(Buffer.from('(nobody)'), NOW)
  }, /another protocol/)
})

test('what a datagram says before noise is heard, however long the noise', async (t) => {
  const messages: [StreamProtocol, string][] = [
    [h02, '*HQ,135790246811220,HTBT,100#'],
    [queclink, '+ACK:GTHBD,1A0401,135790246811220,,20100214093254,11F0$'],
    [tk103, '(087073005534BP00HSO)'],
  ]
  const noise = 'x'.repeat(5_000)
  for (const [protocol, message] of messages) {
    const read = (text: string) => protocol.readDatagram?.(Buffer.from(text, 'latin1'), NOW)
    t.equal(read(message + message + noise)?.length, 2, message)
    t.throws(() => read(noise), /this is /)
  }
})
