import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, signUp, startService, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

const EVENTS = ['onGeofenceEntry', 'onGeofenceLeave', 'onStartTrip', 'onFinishTrip']

/** The examples of docs/webhooks.md by event. */
const documented = (): Map<string, Json> =>
  new Map(
    [...readFileSync('docs/webhooks.md', 'utf8').matchAll(/^```json\n(.*?)^```$/gms)].map(([, text]) => {
      const body = JSON.parse(text)
      return [body.type as string, body]
    }),
  )

/** Every member by its path, with the type of its value and the form of its text. */
const shapeOf = (value: Json, path = ''): string[] => {
  if (value === null || typeof value !== 'object') return [`${path}: ${value === null ? 'null' : formOf(value)}`]
  const members = Object.keys(value).sort()
  return members.length === 0 ? [`${path}: {}`] : members.flatMap((name) => shapeOf(value[name], `${path}/${name}`))
}

const formOf = (value: Json): string => {
  if (typeof value !== 'string') return typeof value
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return 'time'
  return /^[0-9a-f]{8}-/.test(value) ? 'id' : 'string'
}

test('the body of each webhook is as docs/webhooks.md shows it', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const post = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const receiver = await openReceiver(t)
  const group = await post('/geofence-group', { name: 'Depots' })
  await post('/geofence', {
    name: 'Depot West',
    geofenceGroupId: group._id,
    center: { lat: 52.23, lng: 20.98 },
    radius: 300,
    attributes: { code: 'W1' },
  })
  for (const event of EVENTS) {
    const made = await post('/automation', {
      name: event,
      event,
      automationType: 'webhook',
      automationDetails: { url: receiver.url },
      rules: { fields: event.includes('Geofence') ? { geofenceGroupId: group._id } : {} },
    })
    receiver.secrets.set(made._id, made.automationDetails.secret)
  }
  const { deviceKey } = await post('/tracker', { name: 'Van 12', kind: 'vehicle', externalId: 'van-12', hubId })
  const start = Date.now() - 600_000
  const points = [52.25, 52.23, 52.21].map((lat, i) => ({
    recordedAt: start + i * 60_000,
    lat,
    lng: 20.98,
    accuracy: 5,
    speed: 11.2,
    heading: 180,
    ...(i === 0 && { trip: 'start' }),
    ...(i === 2 && { trip: 'finish' }),
  }))
  await ask(service, 'POST', '/location-history/bulk', { token: deviceKey, body: { points } })
  const received = (event: string): Json => receiver.deliveries.find(({ body }) => body.type === event)?.body
  await until('a delivery of each event', () => EVENTS.every((event) => received(event) !== undefined))
  t.same(receiver.bad, [], 'each is signed')
  const examples = documented()
  for (const event of EVENTS) {
    if (process.env.SHOW) t.comment(JSON.stringify(received(event), null, 2))
    t.same(shapeOf(examples.get(event)), shapeOf(received(event)), event)
  }
})
