import { test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { exampleOf } from '../../src/ingress/example.ts'
import { NamedSchemas } from '../../src/ingress/named-schemas.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { EngineHealth } from '../../src/kit/operations/engine-health.ts'
import { operationsRoutes } from '../../src/kit/operations/operations-routes.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { openDoor, simpleRoute } from './support.ts'

const hub = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 2 }, lat: { type: 'number', maximum: 90 } },
  required: ['name'],
  additionalProperties: false,
}

test('the OpenAPI document says what the routes do', async (t) => {
  const routes = [
    simpleRoute({
      path: '/hubs',
      operationId: 'listHubs',
      access: { permission: 'view/hub' },
      query: { type: 'object', properties: { limit: { type: 'integer', maximum: 500, description: 'How many.' } } },
    }),
    simpleRoute({
      method: 'POST',
      path: '/hub',
      operationId: 'createHub',
      access: 'user',
      body: hub,
      answers: { 201: { description: 'The hub.', schema: hub } },
    }),
    simpleRoute({
      method: 'PUT',
      path: '/hub/{hubId}',
      operationId: 'replaceHub',
      access: 'user',
      body: hub,
      bodyExample: { name: 'North' },
      params: { hubId: { type: 'string' } },
      aliases: [{ method: 'POST', path: '/hub/{hubId}/', operationId: 'replaceHubAlias' }],
    }),
    simpleRoute({ path: '/healthz', root: true, operationId: 'readLiveness' }),
  ]
  const door = await openDoor(t, { routes })
  const answer = await fetch(`${door.url}/openapi.json`)
  t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
  // biome-ignore lint/suspicious/noExplicitAny: a document is looked into freely
  const document = (await answer.json()) as any
  t.equal(document.openapi, '3.1.0')
  t.same(document.servers, [{ url: '/api/v3' }])
  t.same(Object.keys(document.paths), ['/hubs', '/hub', '/hub/{hubId}', '/healthz', '/openapi.json', '/asyncapi.json'])
  t.same(document.paths['/healthz'].servers, [{ url: '/' }])
  const create = document.paths['/hub'].post
  t.same(create.requestBody.content['application/json'], { schema: hub, example: { name: 'text', lat: 1 } })
  t.ok(create.responses[201].content['application/json'].example)
  t.same(Object.keys(create.responses), [
    '201',
    '400',
    '401',
    '403',
    '404',
    '409',
    '413',
    '415',
    '422',
    '429',
    '500',
    '503',
  ])
  t.same(create.parameters, [{ $ref: '#/components/parameters/IdempotencyKey' }])
  t.match(document.components.parameters.IdempotencyKey, { name: 'Idempotency-Key', in: 'header' })
  t.same(document.paths['/hubs'].get.security, [{ bearer: ['view/hub'] }])
  t.equal(document.paths['/hubs'].get.description, 'Needs the permission `view/hub`.')
  t.same(document.paths['/healthz'].get.security, [])
  t.match(document.paths['/hubs'].get.parameters, [
    { name: 'limit', in: 'query', required: false, description: 'How many.', schema: { type: 'integer' } },
  ])
  t.equal(document.paths['/hub/{hubId}'].put.requestBody.content['application/json'].example.name, 'North')
  t.equal(document.paths['/hub/{hubId}'].post.operationId, 'replaceHubAlias')
  for (const reference of JSON.stringify(document).matchAll(/"#\/components\/responses\/(\w+)"/g))
    t.ok(document.components.responses[reference[1]], reference[1])
})

test('schemas with a name are components, once each', async (t) => {
  const named = new NamedSchemas()
  const point = { title: 'Point', type: 'object', properties: { lat: { type: 'number' } } }
  const reference = { $ref: '#/components/schemas/Point' }
  t.same(named.shown({ type: 'array', items: point }), { type: 'array', items: reference })
  t.same(named.shown({ title: 'a title in words', anyOf: [point, { type: 'null' }] }), {
    title: 'a title in words',
    anyOf: [reference, { type: 'null' }],
  })
  t.same(named.shown({ type: ['object', 'null'] }), { type: ['object', 'null'], additionalProperties: true })
  t.same(named.shown({ type: 'object', additionalProperties: false }), { type: 'object', additionalProperties: false })
  const sent = {
    title: 'NewPoint',
    type: 'object',
    properties: { on: { type: 'boolean', default: true, description: 'Whether.' } },
  }
  named.shown(sent, true)
  t.same(named.all(), {
    NewPoint: { type: 'object', properties: { on: { type: 'boolean', description: 'Whether. Default: `true`.' } } },
    Point: { type: 'object', properties: point.properties },
  })
  t.throws(() => named.shown({ ...point, required: ['lat'] }), /two different schemas have the title Point/)
})

test('the AsyncAPI document has the channels and their messages', async (t) => {
  const message = {
    name: 'points',
    summary: 'Points.',
    direction: 'in' as const,
    payload: { type: 'object' },
    examples: [{ type: 'points', points: [] }],
  }
  const door = await openDoor(t, {
    channelDocuments: [{ path: '/ingest', title: 'Ingest', description: 'Points in.', messages: [message] }],
  })
  // biome-ignore lint/suspicious/noExplicitAny: a document is looked into freely
  const document = (await (await fetch(`${door.url}/asyncapi.json`)).json()) as any
  t.equal(document.asyncapi, '3.0.0')
  t.equal(document.channels.ingest.address, '/api/v3/ingest')
  t.same(Object.keys(document.channels.ingest.messages), ['auth', 'error', 'points'])
  t.same(document.components.messages['ingest-points'].examples, [{ payload: { type: 'points', points: [] } }])
  t.match(document.operations.ingestReceive, {
    action: 'receive',
    messages: [{ $ref: '#/channels/ingest/messages/auth' }, { $ref: '#/channels/ingest/messages/points' }],
  })
})

test('made examples fit their schemas', async (t) => {
  const ajv = new Ajv2020({ strict: false })
  const schemas = [
    hub,
    { type: ['string', 'null'], minLength: 10 },
    { type: 'array', minItems: 2, items: { enum: ['a', 'b'] } },
    { oneOf: [{ type: 'object', properties: { lat: { const: 4 } }, required: ['lat'] }, { type: 'null' }] },
    { type: 'integer', minimum: 20, maximum: 30 },
    { type: 'number', exclusiveMinimum: 5 },
    {
      type: 'object',
      properties: { on: { type: 'boolean' }, at: { type: 'string', maxLength: 2 } },
      required: ['on', 'at'],
    },
  ]
  for (const schema of schemas) t.ok(ajv.validate(schema, exampleOf(schema)), JSON.stringify(schema))
})

test('alive, ready, and the numbers', async (t) => {
  const metrics = createMetrics()
  let isReady = false
  let ping = async (): Promise<void> => undefined
  let pings = 0
  const clock = { ...systemClock, now: () => now, monotonic: () => now }
  let now = 1_000_000
  const pingHistory = (): Promise<void> => {
    pings++
    return ping()
  }
  const engines = { log: { ping: async () => undefined }, history: { ping: pingHistory } }
  const health = new EngineHealth({ engines, metrics, clock })
  t.teardown(() => {
    health.close()
    metrics.close()
  })
  const door = await openDoor(t, { routes: operationsRoutes({ metrics, health, isReady: () => isReady }), metrics })
  const get = async (path: string) => {
    const answer = await fetch(door.url + path)
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  }
  t.equal((await get('/healthz')).status, 200)
  t.equal((await get('/readyz')).status, 503)
  isReady = true
  t.equal((await get('/readyz')).status, 200)
  t.equal((await get('/readyz')).status, 200)
  t.equal(pings, 1, 'pings are shared for a second')
  ping = () => Promise.reject(new Error('gone'))
  now += 1_000
  const down = await get('/readyz')
  t.equal(down.status, 503)
  t.ok(down.headers.get('retry-after'))
  t.match(JSON.parse(down.text), { status: false, code: 'engine_down', engines: ['history'], message: /history/ })
  ping = () => new Promise(() => undefined)
  now += 1_000
  t.match((await get('/readyz')).text, /history/, 'one that never answers is down')
  metrics.points.inc({ result: 'accepted' }, 3)
  metrics.appendSeconds.observe(0.004)
  metrics.consumerLagEvents.set({ consumer: 'history', partition: 0 }, 4)
  metrics.consumerLagSeconds.set({ consumer: 'history', partition: 0 }, 0.5)
  let scrapes = 0
  metrics.beforeScrape(() => scrapes++)
  const numbers = await get('/metrics')
  t.equal(scrapes, 1)
  t.match(numbers.headers.get('content-type'), /^text\/plain/)
  for (const line of [
    /^waymark_points_total\{result="accepted"\} 3$/m,
    /^waymark_points_total\{result="duplicate"\} 0$/m,
    /^waymark_append_seconds_bucket\{le="0.005"\} 1$/m,
    /^waymark_consumer_lag_events\{consumer="history",partition="0"\} 4$/m,
    /^waymark_consumer_lag_seconds\{consumer="history",partition="0"\} 0.5$/m,
    /^waymark_live_clients 0$/m,
    /^waymark_live_conflated_total 0$/m,
    /^waymark_transitions_total\{type="entry"\} 0$/m,
    /^waymark_deliveries_total\{outcome="succeeded"\} 0$/m,
    /^waymark_event_loop_delay_seconds\{statistic="p99"\} \S+$/m,
    /^waymark_engine_up\{engine="log"\} 1$/m,
    /^waymark_engine_up\{engine="history"\} 0$/m,
    /^waymark_http_requests_total\{method="GET",route="\/readyz",status="200"\} 2$/m,
  ])
    t.match(numbers.text, line)
  t.same(metricFaults(numbers.text), [], 'what `promtool check metrics` would complain of')
})

/** The rules of `promtool check metrics` that a name or label can break. */
const metricFaults = (text: string): string[] => {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
  const faults: string[] = []
  for (const [name, type] of types) {
    if (!text.includes(`# HELP ${name} `)) faults.push(`${name} has no help`)
    if ((type === 'counter') !== name.endsWith('_total')) faults.push(`${name} is a ${type}`)
    if (/(milliseconds|_ms|minutes|hours|kilobytes|megabytes|_count|_sum|_bucket)$/.test(name))
      faults.push(`${name}: unit`)
  }
  for (const [line, name, labels] of text.matchAll(/^([a-z_]+)\{(.*)\} \S+$/gm)) {
    const type = types.get(name.replace(/_(bucket|sum|count)$/, '')) ?? types.get(name)
    if (/(^|,)quantile=/.test(labels) && type !== 'summary') faults.push(line)
    if (/(^|,)le=/.test(labels) && type !== 'histogram') faults.push(line)
  }
  return faults
}
