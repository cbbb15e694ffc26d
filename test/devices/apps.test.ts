import sodium from 'libsodium-wrappers'
import { test } from 'tap'
import { readChirpStack } from '../../src/devices/chirpstack/read.ts'
import { readOsmAnd } from '../../src/devices/osmand/read.ts'
import { readOverland } from '../../src/devices/overland/read.ts'
import { readOwnTracks } from '../../src/devices/owntracks/read.ts'
import { readTraccar, readTraccarForm } from '../../src/devices/traccar/read.ts'
import { readTtn } from '../../src/devices/ttn/read.ts'
import { devicePoint, type Heard, NOTHING } from '../../src/devices/point.ts'
import { timeOf } from '../../src/devices/values.ts'
import { checkFact, factsOf } from './facts.ts'

const FACTS_MIN = 5

const only = ([heard = NOTHING]: Heard[]): Heard => heard
const overlandOf = (body: unknown): Heard => only(readOverland(body))
const traccarsOf = (body: unknown): Heard[] => readTraccar(body, (form) => readTraccarForm(form, 0))
const traccarOf = (body: unknown): Heard => only(traccarsOf(body))

const queryOf = (text: string): { [name: string]: string } => Object.fromEntries(new URLSearchParams(text))

test('bodies of apps, as their sources say', async (t) => {
  const readers = {
    overland: overlandOf,
    traccar: traccarOf,
    ttn: readTtn,
  }
  for (const [protocol, read] of Object.entries(readers)) {
    const facts = factsOf(protocol)
    t.ok(facts.length >= FACTS_MIN, `${protocol}: facts`)
    for (const [i, fact] of facts.entries()) checkFact(t, read(fact.body), fact, `${protocol} ${i} ${fact.note ?? ''}`)
  }
  for (const [i, fact] of factsOf('owntracks').entries())
    checkFact(t, readOwnTracks(fact.body, { secret: fact.secret }), fact, `owntracks ${i} ${fact.note ?? ''}`)
  for (const [i, fact] of factsOf('chirpstack').entries())
    checkFact(t, readChirpStack(fact.body, fact.event), fact, `chirpstack ${i} ${fact.note ?? ''}`)
})

test('the form of OsmAnd and of Traccar Client: the same names, other units', async (t) => {
  for (const [i, fact] of factsOf('osmand').entries()) {
    const form = queryOf(fact.query as string)
    const what = `${i} ${fact.note ?? fact.query}`
    checkFact(t, readOsmAnd(form, 0), fact, `osmand ${what}`)
    const { traccar } = fact
    const points = fact.points.map((point, at) => ({ ...point, ...traccar?.[at] }))
    checkFact(t, readTraccarForm(form, 0), { ...fact, points }, `traccar ${what}`)
  }
})

test('an OwnTracks message as libsodium seals it opens with the same key alone', async (t) => {
  await sodium.ready
  const key = new Uint8Array(32)
  key.set(Buffer.from('a-secret'))
  const nonce = sodium.randombytes_buf(sodium.crypto_secretbox_NONCEBYTES)
  const inside = JSON.stringify({ _type: 'location', lat: 1.5, lon: 2.5, tst: 1_700_000_000 })
  const data = Buffer.concat([nonce, sodium.crypto_secretbox_easy(inside, nonce, key)]).toString('base64')
  const message = { _type: 'encrypted', data, topic: 'owntracks/jane/phone' }
  t.match(readOwnTracks(message, { secret: 'a-secret' }), {
    name: 'owntracks/jane/phone',
    points: [{ lat: 1.5, lng: 2.5 }],
  })
  for (const secret of ['another', undefined]) {
    const { points } = readOwnTracks(message, { secret })
    t.equal(points.length, 1, 'it is kept as something to be refused, so that it counts')
    t.ok(Number.isNaN(points[0].lat))
  }
  t.ok(Number.isNaN(readOwnTracks({ ...message, data: 'short' }, { secret: 'a-secret' }).points[0].lat))
})

test('a message of OwnTracks says its sender by topic, beside itself, or by its two letters', (t) => {
  const message = { _type: 'location', lat: 1, lon: 2, tst: 1_700_000_000, tid: 'JJ' }
  t.equal(readOwnTracks({ ...message, topic: 'owntracks/jane/phone' }, { name: 'beside' }).name, 'owntracks/jane/phone')
  t.equal(readOwnTracks(message, { name: 'beside' }).name, 'beside')
  t.equal(readOwnTracks(message).name, 'JJ')
  t.end()
})

test('what trackers of hardware say beside a location of OwnTracks, in the units of the table', async (t) => {
  const place = { _type: 'location', lat: 1, lon: 2, tst: 1_700_000_000 }
  const attributesOf = (said: object) => readOwnTracks({ ...place, ...said }).points[0].attributes
  const said = {
    odometer: 12.5,
    hmc: 5400,
    ign: true,
    rpm: 900,
    flvl: 40,
    uext: 12.4,
    ubatt: 3.9,
    vin: 'V',
    din1: 1,
    dout2: false,
  }
  t.strictSame(attributesOf(said), {
    ignition: true,
    odometer: 12_500,
    engineHours: 1.5,
    rpm: 900,
    fuel: 40,
    power: 12.4,
    batteryVoltage: 3.9,
    vin: 'V',
    input1: true,
    output2: false,
  })
  for (const [reason, attributes] of [
    [{ t: 'i' }, { ignition: true }],
    [{ t: 'I' }, { ignition: false }],
    [{ t: 'e' }, { powerCut: true, alarm: 'powerCut' }],
    [{ t: 'E' }, { powerCut: false }],
    [{ t: '!' }, { alarm: 'tow' }],
    [{ t: 'h', rty: 4 }, { alarm: 'hardAcceleration' }],
    [{ t: 'h' }, {}],
    [{ t: 'constructor' }, {}],
  ] as const)
    t.strictSame(attributesOf(reason), { event: reason.t, ...attributes })
})

test('anything at all is read without an exception', async (t) => {
  const strange: unknown[] = [
    undefined,
    null,
    1,
    'text',
    [],
    {},
    { locations: [null, 1, {}, { geometry: 1 }] },
    { location: [] },
  ]
  strange.push({ _type: 'location' }, { _type: 'encrypted', data: 7 }, { location: { coords: { latitude: {} } } })
  strange.push({ uplink_message: { decoded_payload: { gps_0: [] }, rx_metadata: 'no' } }, { object: { location: 5 } })
  for (const body of strange)
    for (const read of [overlandOf, traccarOf, readTtn, readOwnTracks])
      t.ok(Array.isArray(read(body).points), `${read.name} of ${JSON.stringify(body)}`)
  for (const body of strange) t.ok(Array.isArray(readChirpStack(body, 'up').points))
  t.same(readOsmAnd({ lat: ['1', '2'], lon: '3', timestamp: 'never' }, 0).points.length, 1)
})

test('clients made from Traccar Client: members of the form as JSON, one or many, and a location that is flat', async (t) => {
  const form = {
    id: 'van',
    lat: 50.5,
    lon: 10.25,
    timestamp: 1_700_000_000,
    speed: 10,
    batt: 50,
    charge: true,
    alarm: 'sos',
  }
  const point = { recordedAt: 1_700_000_000_000, lat: 50.5, lng: 10.25, speed: 10 * (1852 / 3600), battery: 0.5 }
  t.match(traccarsOf(form), [{ name: 'van', points: [{ ...point, attributes: { charging: true, alarm: 'sos' } }] }])
  const later = { ...form, timestamp: 1_700_000_001 }
  t.match(
    traccarsOf([form, { ...form, id: 7 }, later, { id: 'van' }, null]).map(({ name, points }) => [name, points.length]),
    [
      ['van', 2],
      ['7', 1],
      [undefined, 0],
    ],
    'each device for itself',
  )
  const location = { timestamp: '2023-11-14T22:13:20Z', latitude: 50.5, longitude: 10.25, speed: 3, alarm: 'sos' }
  const flat = { device_id: 'van', location, battery: { level: 0.5 }, activity: { type: 'walking' } }
  const attributes = { activity: 'walking', alarm: 'sos' }
  const place = { recordedAt: 1_700_000_000_000, lat: 50.5, lng: 10.25 }
  t.match(traccarsOf(flat), [{ name: 'van', points: [{ ...place, speed: 3, battery: 0.5, attributes }] }])
})

test('times in every form that clients write', async (t) => {
  const at = Date.parse('2014-06-04T09:10:11Z')
  for (const text of [
    '2014-06-04T09:10:11Z',
    '2014-06-04 09:10:11',
    '2014-06-04T11:10:11+0200',
    '2014-06-04T11:10:11+02:00',
  ])
    t.equal(timeOf(text), at, text)
  t.equal(timeOf(at / 1000), at)
  t.equal(timeOf(String(at)), at)
  t.equal(timeOf('2025-11-12T08:29:01.954236764Z'), Date.parse('2025-11-12T08:29:01.954Z'), 'nanoseconds')
  for (const text of ['', 'yesterday', '2014-13-04T09:10:11Z', undefined, {}])
    t.ok(Number.isNaN(timeOf(text)), String(text))
})

test('what cannot be true is left out and loses no point; attributes stay within a kilobyte', async (t) => {
  const strange = { accuracy: -1, speed: Number.NaN, heading: 361, battery: 1.01, altitude: 2e6 }
  t.same(devicePoint(1, 2, 3, strange), { recordedAt: 1, lat: 2, lng: 3 })
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`io${i}`, i]))
  const { attributes } = devicePoint(1, 2, 3, { attributes: { ignition: true, ...many, text: 'é'.repeat(400) } })
  t.ok(Buffer.byteLength(JSON.stringify(attributes)) <= 1024)
  t.equal(attributes?.ignition, true, 'the first ones are kept')
})

test('names that every object has are no attributes', async (t) => {
  const said = JSON.parse('{"constructor": 5, "__proto__": 6, "latitude": 1, "longitude": 2, "sats": 7}')
  const attributes = { satellites: 7 }
  const [fix] = readOsmAnd(queryOf('constructor=5&__proto__=6&lat=1&lon=2&sat=7'), 0).points
  t.strictSame(fix.attributes, attributes)
  const [uplink] = readTtn({ uplink_message: { decoded_payload: said } }).points
  t.strictSame(uplink.attributes, attributes)
})
