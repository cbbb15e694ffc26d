import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { test } from 'tap'
import { faultsOf } from '../support/open-api.ts'
import { openSocket } from '../support/open-socket.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

// biome-ignore lint/suspicious/noExplicitAny: parts of a document
type Json = any

/** Faults of a document by the schema that the AsyncAPI initiative publishes for its version. */
const faultsByAsyncApi = (document: Json): string[] => {
  const path = createRequire(import.meta.url).resolve(`@asyncapi/specs/schemas/${document.asyncapi}.json`)
  const ajv = formats.default(new Ajv({ strict: false, allErrors: true }))
  const schema = JSON.parse(readFileSync(path, 'utf8'))
  delete schema.definitions['http://json-schema.org/draft-07/schema'] // ajv has it
  const validate = ajv.compile(schema)
  validate(document)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const payloadOf = (document: Json, channel: string, type: string): Json =>
  document.components.messages[`${channel}-${type}`]?.payload

test('what the channels send is what the document says', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const document = (await call(service, 'GET', '//asyncapi.json')).json
  const { token } = await signUp(service)
  const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })).data
  await ask(service, 'POST', '/geofence', {
    token,
    body: { name: 'Yard', geofenceGroupId: group._id, center: { lat: 52, lng: 21 }, radius: 500 },
  })
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key

  await t.test('the document', async (t) => {
    t.match(document, {
      asyncapi: /^3\./,
      channels: { ingest: { address: '/api/v3/ingest' }, live: { address: '/api/v3/live' } },
    })
    t.same(faultsByAsyncApi(document), [], 'it is an AsyncAPI document')
    t.not(faultsByAsyncApi({ ...document, channels: { live: { address: 7 } } }).length, 0, 'which not everything is')
    for (const [name, { payload, examples, contentType }] of Object.entries<Json>(document.components.messages)) {
      t.ok(contentType !== 'application/json' || examples?.length > 0, `${name} has an example`)
      for (const example of examples ?? [])
        t.same(faultsOf(payload, example.payload, { document }), [], `the example of ${name}`)
    }
    const referenced = JSON.stringify(document).match(/"#\/[^"]+"/g) ?? []
    for (const reference of new Set(referenced.map((text) => text.slice(3, -1)))) {
      t.ok(
        reference.split('/').reduce((part, name) => part?.[name], document),
        `#/${reference} is there`,
      )
    }
  })

  const live = await openSocket(service, 'live', token)
  live.send({ type: 'subscribe', id: 'all', channels: ['positions', 'geofence', 'trip', 'task'], interval: 20 })
  live.send({ type: 'subscribe', id: 'bad', channels: ['weather'] })
  live.send({ type: 'subscribe', id: 'old', channels: ['geofence'], since: 'AAAA' })
  await live.heard(({ type, id }) => type === 'snapshot' && id === 'all')
  const ingest = await openSocket(service, 'ingest', key)
  await ingest.heard(({ type }) => type === 'ready')
  const start = Date.now() - 60_000
  const frames = [
    [{ externalId: 'a', recordedAt: start, lat: 52.1, lng: 21, trip: 'start' }],
    [
      { externalId: 'a', recordedAt: start + 1_000, lat: 52, lng: 21, speed: 3 },
      { externalId: 'a', recordedAt: start, lat: 91, lng: 0 },
    ],
    [{ externalId: 'a', recordedAt: start + 2_000, lat: 52.1, lng: 21, trip: 'finish' }],
  ]
  for (const [i, points] of frames.entries()) ingest.send({ type: 'points', seq: i + 1, points })
  await ingest.heard(({ type, seq }) => type === 'ack' && seq === frames.length)
  const [flow] = (await ask(service, 'GET', '/flows?limit=1', { token })).data
  const [hub] = (await ask(service, 'GET', '/hubs', { token })).data
  const body = { flowId: flow._id, hubId: hub._id, title: 'Deliver' }
  const task = (await ask(service, 'POST', '/task', { token, body })).data
  await ask(service, 'DELETE', `/task/${task._id}`, { token })
  await until('six events', () => live.messages.filter(({ type, id }) => type === 'event' && id === 'all').length >= 6)
  await live.heard(({ type }) => type === 'positions')

  const expected = { ingest: ['ready', 'reject', 'ack'], live: ['snapshot', 'positions', 'event', 'error'] }
  for (const [channel, { messages }] of [
    ['ingest', ingest],
    ['live', live],
  ] as const) {
    for (const type of expected[channel])
      t.ok(
        messages.some((one) => one.type === type),
        `${channel} sent ${type}`,
      )
    for (const message of messages) {
      const payload = payloadOf(document, channel, message.type)
      if (t.ok(payload, `${channel}-${message.type} is documented`))
        t.same(faultsOf(payload, message, { document }), [], `${channel}-${message.type}`, { message })
    }
  }
  const events = live.messages
    .filter(({ type, id }) => type === 'event' && id === 'all')
    .map(({ channel, event }) => `${channel} ${event.type ?? event.state ?? (event.gone && 'gone')}`)
  t.same(
    events.sort(),
    ['geofence entry', 'geofence leave', 'task gone', 'task new', 'trip finished', 'trip running'],
    'the events of the drive and of a task',
  )
  for (const one of [live, ingest]) one.close()
})
