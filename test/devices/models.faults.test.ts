import { connectAsync } from 'mqtt'
import { test, type Test } from 'tap'
import { Broker } from '../support/broker.ts'
import {
  type Queue,
  sendGt06,
  sendH02,
  sendInBatches,
  sendOneByOne,
  sendQueclink,
  sendTeltonika,
  sendTeltonikaDatagrams,
  sendTk103,
  untilEmpty,
} from '../support/device-clients.ts'
import { asGt06, asMinutes, asQueclink, type FramePoint } from '../support/device-frames.ts'
import { folderOf } from '../support/folder-of.ts'
import { freeDatagramPort, freePort } from '../support/free-port.ts'
import { realDay, type RealDay, tracksOf } from '../support/real-day.ts'
import { call, type Service, signUp, startService, until } from '../support/service.ts'
import { checkDay, prepare } from '../support/stream-checks.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

const FIXES = 1_500

/** Where clients send to; the same through all restarts. */
interface Ways {
  http(protocol: string): string
  teltonika: number
  gt06: number
  h02: number
  queclink: number
  tk103: number
  /** Resolves once the service has acknowledged one more message of this topic to the broker. */
  publish(topic: string, body: object): Promise<void>
}

interface Client {
  /** What it calls itself: the `externalId` of its tracker. */
  name(number: number): string
  /** A place in the digits of its protocol. */
  kept?: (degrees: number) => number
  send(queue: Queue, ways: Ways, name: string): Promise<void>
}

const imei = (kind: number) => (number: number) => `35630704${kind}${String(number).padStart(6, '0')}`
const named = (kind: string) => (number: number) => `${kind}-${number}`
const inTopic = (user: string) => (number: number) => `owntracks/${user}/${number}`
const written = ({ recordedAt }: FramePoint): string => new Date(recordedAt).toISOString()
const ownTracks = ({ recordedAt, lat, lng }: FramePoint) => ({
  _type: 'location',
  lat,
  lon: lng,
  tst: recordedAt / 1000,
})
const formOf = ({ recordedAt, lat, lng }: FramePoint, name: string): string =>
  `?id=${name}&lat=${lat}&lon=${lng}&timestamp=${recordedAt / 1000}`

const CLIENTS: readonly Client[] = [
  {
    name: inTopic('http'),
    send: (queue, { http }, topic) =>
      sendOneByOne(queue, (place) => ({ url: http('owntracks'), body: { ...ownTracks(place), topic } })),
  },
  { name: named('overland'), send: (queue, { http }, name) => sendInBatches(queue, http('overland'), name) },
  {
    name: named('traccar'),
    send: (queue, { http }, name) =>
      sendOneByOne(queue, (place) => ({
        url: http('traccar'),
        body: {
          device_id: name,
          location: { timestamp: written(place), coords: { latitude: place.lat, longitude: place.lng } },
        },
      })),
  },
  {
    name: named('traccar-form'),
    send: (queue, { http }, name) => sendOneByOne(queue, (place) => ({ url: http('traccar') + formOf(place, name) })),
  },
  {
    name: named('osmand'),
    send: (queue, { http }, name) => sendOneByOne(queue, (place) => ({ url: http('osmand') + formOf(place, name) })),
  },
  { name: imei(1), send: (queue, { teltonika }, name) => sendTeltonika(queue, teltonika, name) },
  { name: imei(2), send: (queue, { teltonika }, name) => sendTeltonikaDatagrams(queue, teltonika, name) },
  { name: imei(3), kept: asGt06, send: (queue, { gt06 }, name) => sendGt06(queue, gt06, name) },
  { name: imei(4), kept: asMinutes, send: (queue, { h02 }, name) => sendH02(queue, h02, name) },
  { name: imei(5), kept: asQueclink, send: (queue, { queclink }, name) => sendQueclink(queue, queclink, name) },
  {
    name: (number) => `0443${String(number).padStart(8, '0')}`,
    kept: asMinutes,
    send: (queue, { tk103 }, name) => sendTk103(queue, tk103, name),
  },
  {
    name: inTopic('broker'),
    send: (queue, { publish }, topic) =>
      untilEmpty(queue, async () => {
        await publish(topic, ownTracks(queue.places[0]))
        return 1
      }),
  },
  {
    name: named('depot/gate'),
    send: (queue, { publish }, name) =>
      untilEmpty(queue, async () => {
        const [{ lat, lng }] = queue.places
        await publish(`waymark/${name}/points`, { recordedAt: written(queue.places[0]), lat, lng })
        return 1
      }),
  },
]

/** The day as its clients can say it: whole seconds, their own names, places in the digits of their protocols. */
const asSaid = ({ fixes, fences }: RealDay): { day: RealDay; clientOf: Map<string, Client> } => {
  const clientOf = new Map<string, Client>()
  const said = [...tracksOf(fixes).values()].flatMap((track, i) => {
    const client = CLIENTS[i % CLIENTS.length]
    const { kept = (degrees) => degrees } = client
    const externalId = client.name(i)
    clientOf.set(externalId, client)
    return track.map(({ recordedAt, lat, lng }) => ({
      externalId,
      recordedAt: Math.floor(recordedAt / 1000) * 1000,
      lat: kept(lat),
      lng: kept(lng),
    }))
  })
  return { day: { fixes: [...tracksOf(said).values()].flat(), fences }, clientOf }
}

/** A broker with one publisher for all phones: each says its next place once the last one is acknowledged, so that none is late. */
const openPhones = async (t: Test, broker: Broker) => {
  const phones = await connectAsync(broker.url, { clientId: 'phones' })
  t.teardown(() => phones.endAsync(true))
  const heard = (topic: string): number =>
    broker.acknowledged.filter((one) => one.topic === topic && one.client.startsWith('waymark-')).length
  return async (topic: string, body: object): Promise<void> => {
    const before = heard(topic)
    await phones.publishAsync(topic, JSON.stringify(body), { qos: 1 })
    await until('the acknowledgement of the bridge', () => heard(topic) > before)
  }
}

test('a day of thirteen kinds of clients through kills and overload: every point once, transitions as computed, each delivered', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const port = await freePort()
  const [teltonika, h02, gt06] = [await freeDatagramPort(), await freeDatagramPort(), await freePort()]
  const [queclink, tk103] = [await freeDatagramPort(), await freeDatagramPort()]
  const ports = Object.entries({ teltonika, h02, gt06, queclink, tk103 }).map((port) => port.join(':'))
  let service: Service = await startService(folder, [], port)
  t.teardown(() => service.kill())
  const { day, clientOf } = asSaid(await realDay(t, FIXES, Date.now()))
  const receiver = await openReceiver(t)
  const { token } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)
  await service.stop()
  const broker = await Broker.start(t)
  const flags = [
    ...['--devices', ports.join(), '--devices-key', setting.ingestKey],
    ...['--mqtt', broker.url, '--mqtt-key', setting.ingestKey],
    ...['--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s'],
  ]
  const restart = async (...more: string[]): Promise<void> => {
    service = await startService(folder, [...flags, ...more], port)
  }
  await restart()
  const bridged = async (): Promise<boolean> =>
    /waymark_mqtt_connected\{.*\} 1/.test((await call(service, 'GET', '//metrics')).text)
  await until('the bridge', bridged)

  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  const publish = await openPhones(t, broker)
  const http = (protocol: string): string => `${service.url}/in/${protocol}/${setting.ingestKey}`
  const ways: Ways = { http, teltonika, gt06, h02, queclink, tk103, publish }
  const queues = [...tracksOf(day.fixes)].map(([name, places]) => ({ name, places: [...places], isOver: () => isOver }))
  const sending = queues.map((queue) => (clientOf.get(queue.name) as Client).send(queue, ways, queue.name))
  const untilSent = (share: number): Promise<void> =>
    until(`${share} of the day`, () => queues.reduce((sum, one) => sum + one.places.length, 0) <= FIXES * (1 - share))

  await untilSent(0.2)
  await service.kill()
  await restart('--org-points-per-second', '50')
  await untilSent(0.3)
  await service.kill()
  await restart()
  await untilSent(0.6)
  await service.kill()
  await restart()
  await untilSent(0.8)
  await service.stop()
  await restart()
  await Promise.all(sending)
  await checkDay(t, service, { day, receiver, setting })
})
