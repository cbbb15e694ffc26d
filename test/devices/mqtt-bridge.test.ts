import { connectAsync, type MqttClient } from 'mqtt'
import tap, { test, type Test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { Broker } from '../support/broker.ts'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, type Json, signUp, startService, until } from '../support/service.ts'

const folder = folderOf(tap)
const before = await startService(folder)

/** An organization of a test's own, made in the first run, since a start with a bridge is given its key. */
const customer = async (autoCreate: boolean) => {
  const { token } = await signUp(before)
  const { key } = (await ask(before, 'POST', '/ingest-key', { token, body: { name: 'Broker', autoCreate } })).data
  return { token, key }
}

const [makesTrackers, knowsTrackers, comesBack] = [await customer(true), await customer(false), await customer(true)]
await before.stop()

const open = async (t: Test, { token, key }: { token: string; key: string }, broker: Broker) => {
  const flags = ['--mqtt', broker.url.replace('//', '//waymark:secret@'), '--mqtt-key', key]
  const service = await startService(folder, flags)
  t.teardown(() => service.kill())
  const pointsOf = async (externalId: string): Promise<Json[]> => {
    const path = `/trackers?externalId=${encodeURIComponent(externalId)}`
    const [tracker] = (await ask(service, 'GET', path, { token })).data
    if (tracker === undefined) return []
    return (await ask(service, 'GET', `/location-histories?trackerId=${tracker._id}&order=asc`, { token })).data
  }
  const bridge = async (): Promise<Json> => {
    const answer: Json = await askControl(folder, { command: 'status' }, 30_000)
    return answer.report.bridges[0]
  }
  await until('the bridge', async () => (await bridge()).isConnected)
  return { service, token, key, pointsOf, bridge }
}

const publisher = async (t: Test, broker: Broker): Promise<MqttClient> => {
  const client = await connectAsync(broker.url, { clientId: 'phones' })
  t.teardown(() => client.endAsync(true))
  return client
}

const NEW_MESSAGES = 30
const secondsAgo = (seconds: number): number => Math.floor(Date.now() / 1000) - seconds
const ofBridge = (broker: Broker) => broker.acknowledged.filter(({ client }) => client.startsWith('waymark-'))

test('points of a broker: OwnTracks and the form of the API, under the name in the topic', {
  timeout: 300_000,
}, async (t) => {
  const broker = await Broker.start(t, {
    authenticate: (client, name, password, done) =>
      done(null, client.id === 'phones' || (name === 'waymark' && String(password) === 'secret')),
  })
  const { service, token, pointsOf, bridge } = await open(t, makesTrackers, broker)
  const phones = await publisher(t, broker)
  const say = (topic: string, body: unknown) =>
    phones.publishAsync(topic, typeof body === 'string' ? body : JSON.stringify(body), { qos: 1 })

  const tst = secondsAgo(100)
  await say('owntracks/jane/phone', {
    _type: 'location',
    lat: 52.1,
    lon: 21.1,
    tst,
    vel: 36,
    topic: 'owntracks/eve/phone',
  })
  await say('owntracks/jane/phone/event', {
    _type: 'transition',
    event: 'enter',
    desc: 'Home',
    lat: 52.2,
    lon: 21.2,
    tst: tst + 1,
  })
  await say('owntracks/jane/phone', { _type: 'lwt', tst })
  await until('both', async () => (await pointsOf('owntracks/jane/phone')).length === 2)
  t.match(await pointsOf('owntracks/jane/phone'), [
    { lat: 52.1, lng: 21.1, speed: 10 },
    { lat: 52.2, attributes: { event: 'regionEnter', region: 'Home' } },
  ])
  t.same(await pointsOf('owntracks/eve/phone'), [], 'the topic says who it is')

  const recordedAt = new Date(tst * 1000).toISOString()
  await say('waymark/depot/gate 7/points', { points: [{ recordedAt, lat: 0, lng: 0, externalId: 'other', speed: 3 }] })
  await say('waymark/depot/gate 7/points', [{ recordedAt: (tst + 1) * 1000, lat: 1, lng: 2 }])
  await say('waymark/depot/gate 7/points', { recordedAt: (tst + 2) * 1000, lat: 95, lng: 2 })
  await say('waymark/depot/gate 7/points', 'no JSON at all')
  await say('waymark/depot/gate 7/points', { recordedAt: (tst + 3) * 1000, lat: 3, lng: 2 })
  await until('the good ones', async () => (await pointsOf('depot/gate 7')).length === 3)
  t.match(await pointsOf('depot/gate 7'), [{ lat: 0, lng: 0, speed: 3 }, { lat: 1 }, { lat: 3 }])
  const trackerOf = async () =>
    (await ask(service, 'GET', `/trackers?externalId=${encodeURIComponent('depot/gate 7')}`, { token })).data[0]
  await until('the count', async () => (await trackerOf()).rejected?.count === 2)
  t.match((await trackerOf()).rejected, { lastCode: 'invalid' })
  t.same(await pointsOf('other'), [])
  await say('waymark/status', 'online')
  await say('waymark/depot/gate 7/points', '')
  await until('all acknowledged', () => ofBridge(broker).length === 10)
  t.match((await trackerOf()).rejected, { count: 2 }, 'a retained message that was cleared is no point')
  t.match(await bridge(), { broker: `127.0.0.1:${broker.port}`, isConnected: true, waiting: 0, unknown: [] })
  const { text } = await call(service, 'GET', '//metrics')
  t.match(text, `waymark_mqtt_connected{broker="127.0.0.1:${broker.port}"} 1`)
  t.match(text, 'waymark_mqtt_messages_total{result="stored"} 10')
  t.notOk(
    service.lines.some((line) => line.includes('secret')),
    'the password is in no log',
  )
})

test('a sender without a tracker holds up nobody, and comes in once its tracker exists', {
  timeout: 300_000,
}, async (t) => {
  const broker = await Broker.start(t)
  const { service, token, pointsOf, bridge } = await open(t, knowsTrackers, broker)
  const phones = await publisher(t, broker)
  const tst = secondsAgo(100)
  const say = (name: string, second = 0) =>
    phones.publishAsync(
      `owntracks/${name}/phone`,
      JSON.stringify({ _type: 'location', lat: 52, lon: 21, tst: tst + second }),
      { qos: 1 },
    )
  await ask(service, 'POST', '/tracker', { token, body: { name: 'A', externalId: 'owntracks/known/phone' } })
  for (let second = 0; second < NEW_MESSAGES; second++) await say('new', second)
  await say('known')
  await until('the known one', async () => (await pointsOf('owntracks/known/phone')).length === 1)
  t.equal(ofBridge(broker).length, 1, 'none of the new one is acknowledged')
  t.match(await bridge(), { waiting: NEW_MESSAGES, unknown: ['mqtt owntracks/new/phone'] })
  const told = service.lines
    .map((line) => JSON.parse(line) as Json)
    .filter(({ msg }) => msg === 'a device is not known')
  t.match(told, [{ protocol: 'mqtt', name: 'owntracks/new/phone', code: 'unknown_tracker', advice: /--mqtt-key/ }])
  await ask(service, 'POST', '/tracker', { token, body: { name: 'B', externalId: 'owntracks/new/phone' } })
  await until('the new one', async () => (await pointsOf('owntracks/new/phone')).length === NEW_MESSAGES)
  await until('its acknowledgement', async () => (await bridge()).waiting === 0)
})

test('a broker that is away, or refuses, stops nothing: the bridge says so and comes back', {
  timeout: 300_000,
}, async (t) => {
  let mayEnter = true
  const broker = await Broker.start(t, {
    authenticate: (client, _name, _password, done) => done(null, client.id === 'phones' || mayEnter),
    authorizeSubscribe: (_client, subscription, done) =>
      done(null, subscription.topic === 'waymark/#' ? null : subscription),
  })
  const { service, bridge, pointsOf } = await open(t, comesBack, broker)
  await until('the refusal', async () => /waymark\/#/.test((await bridge()).problem ?? ''))
  await broker.kill()
  await until('the end', async () => (await bridge()).isConnected === false)
  mayEnter = false
  await broker.listen()
  await until('what is wrong', async () => /authoriz/i.test((await bridge()).problem ?? ''))
  t.equal((await call(service, 'GET', '//readyz')).status, 200)
  mayEnter = true
  await until('the bridge again', async () => (await bridge()).isConnected)
  const phones = await publisher(t, broker)
  await phones.publishAsync(
    'owntracks/a/b',
    JSON.stringify({ _type: 'location', lat: 52, lon: 21, tst: secondsAgo(9) }),
    { qos: 1 },
  )
  await until('the point', async () => (await pointsOf('owntracks/a/b')).length === 1)
})
