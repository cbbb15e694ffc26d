import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { test, type Test } from 'tap'
import { ask, call, signUp, startService, until, type Service } from '../support/service.ts'
import { openWitness } from '../support/witness.ts'
import { folderOf } from '../support/folder-of.ts'
import { ringOf } from '../support/ring.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

const DAY_MS = 86_400_000

const checkWitness = async (t: Test, witness: Awaited<ReturnType<typeof openWitness>>): Promise<void> => {
  const { sent, acknowledged, longestMs } = await witness.end()
  t.ok(sent > 0 && acknowledged === sent, `the witness had ${acknowledged} of ${sent} frames acknowledged`)
  t.comment(`its longest wait was ${longestMs} ms`)
}

test('bad points, bodies and shapes get their answers and disturb nobody', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const stranger = await signUp(service)
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key
  const lean = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Known only' } })).data.key
  const device = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Own', kind: 'device' } })).data
  const foreign = (
    await ask(service, 'POST', '/tracker', { token: stranger.token, body: { name: 'Foreign', kind: 'device' } })
  ).data
  const witness = await openWitness(service)
  const now = Date.now()
  const good = { externalId: 'a', recordedAt: now, lat: 52, lng: 21 }

  await t.test('points: each bad one is named, its neighbours are kept', async (t) => {
    const bad: [object | string | number | null, string, RegExp][] = [
      ['{"externalId":"a","recordedAt":1,"lat":1e999,"lng":0}', 'invalid', /lat/],
      [{ ...good, lat: '52' }, 'invalid', /lat/],
      [{ ...good, lat: null }, 'invalid', /lat/],
      [{ ...good, lat: 121.5, lng: 31.2 }, 'invalid', /lat/],
      [{ ...good, lng: 180.0001 }, 'invalid', /lng/],
      [{ ...good, accuracy: -1 }, 'invalid', /accuracy/],
      [{ ...good, heading: 361 }, 'invalid', /heading/],
      [{ ...good, battery: 80 }, 'invalid', /battery/],
      [{ ...good, recordedAt: 'yesterday' }, 'invalid', /recordedAt/],
      [{ ...good, recordedAt: undefined }, 'invalid', /recordedAt/],
      [{ ...good, recordedAt: now + DAY_MS + 600_000 }, 'too_far_ahead', /./],
      [{ ...good, recordedAt: now - 366 * DAY_MS }, 'too_old', /./],
      [{ ...good, latitude: 5 }, 'invalid', /latitude/],
      [JSON.stringify(good).replace('{', '{"__proto__":{"lat":5},'), 'invalid', /__proto__/],
      [JSON.stringify({ ...good, attributes: {} }).replace('{}', '{"__proto__":{"a":1}}'), 'invalid', /attributes/],
      [{ ...good, attributes: { a: { b: 1 } } }, 'invalid', /attributes/],
      [{ ...good, attributes: { a: 'x'.repeat(1_100) } }, 'invalid', /attributes/],
      [{ ...good, externalId: undefined, trackerId: foreign._id }, 'unknown_tracker', /./],
      [{ ...good, externalId: undefined, trackerId: 'not-an-id' }, 'unknown_tracker|invalid', /./],
      [{ ...good, externalId: undefined }, 'invalid', /./],
      [{ ...good, trip: 'pause' }, 'invalid', /trip/],
      [7, 'invalid', /./],
      [null, 'invalid', /./],
    ]
    const texts = bad.flatMap(([point], i) => [
      typeof point === 'string' ? point : JSON.stringify(point),
      JSON.stringify({ ...good, recordedAt: now - 1_000 - i }),
    ])
    const answer = await call(service, 'POST', '/location-history/bulk', { token: key, body: `{"points":[${texts}]}` })
    t.equal(answer.status, 200)
    t.equal(answer.json?.data.accepted, bad.length, 'every good one is taken')
    const rejected = new Map(answer.json.data.rejected.map((one: Json) => [one.index, one]))
    bad.forEach(([point, code, message], i) => {
      t.match(rejected.get(i * 2), { code: new RegExp(`^(${code})$`), message }, JSON.stringify(point)?.slice(0, 80))
    })
    t.equal(rejected.size, bad.length)
    const other = await ask(service, 'POST', '/location-history/bulk', {
      token: lean,
      body: { points: [{ ...good, externalId: 'nobody knows' }] },
    })
    t.match(other.data, { accepted: 0, rejected: [{ code: 'unknown_tracker' }] })
    const mine = await ask(service, 'POST', '/location-history/bulk', {
      token: device.deviceKey,
      body: { points: [{ ...good, externalId: 'a' }] },
    })
    t.match(mine.data, { accepted: 0, rejected: [{ code: 'forbidden_tracker' }] })
  })

  await t.test(
    'a clock that jumps: late points never move the tracker back, one far ahead never silences it',
    async (t) => {
      const send = (recordedAt: number, lat: number) =>
        ask(service, 'POST', '/location-history/bulk', {
          token: device.deviceKey,
          body: { points: [{ recordedAt, lat, lng: 0 }] },
        })
      for (const [at, lat] of [
        [now - 5_000, 1],
        [now - 50_000, 2],
        [now + 3_600_000, 3],
        [now - 4_000, 4],
      ])
        t.equal((await send(at, lat)).data.accepted, 1)
      const rows = async (): Promise<Json[]> =>
        (await ask(service, 'GET', `/location-histories?trackerId=${device._id}`, { token })).data
      await until('history', async () => (await rows()).length === 4)
      const position = async (): Promise<Json> =>
        (await ask(service, 'GET', '/live-positions', { token })).data.find((one: Json) => one.trackerId === device._id)
      await until('the live position', async () => (await position())?.lat === 4)
      t.match(await position(), { lat: 4, recordedAt: new Date(now - 4_000).toISOString() })
    },
  )

  await t.test('bodies', async (t) => {
    const points = (text: string | Uint8Array, headers = {}) =>
      call(service, 'POST', '/location-history/bulk', { token: key, body: text, headers })
    const refused = (answer: Json, status: number, code: string, what: string) =>
      t.match({ status: answer.status, json: answer.json }, { status, json: { status: false, code } }, what)
    refused(await points('{"points":[{"recordedAt":1,"lat":NaN,"lng":0}]}'), 400, 'invalid', 'NaN is no JSON')
    refused(await points('x'.repeat(10_000_000)), 400, 'invalid', '10 MB of nonsense')
    refused(await points('['.repeat(10_000_000)), 400, 'invalid', '10 MB of brackets')
    refused(await points(`{"points":${'[{"a":'.repeat(100)}1${'}]'.repeat(100)}}`), 400, 'invalid', 'deep')
    refused(await points(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), 400, 'invalid', 'not UTF-8')
    refused(await points('{"points":[{}],"__proto__":{"x":1}}'), 400, 'invalid', 'a prototype')
    refused(
      await points(JSON.stringify({ points: Array.from({ length: 10_001 }, () => 1) })),
      413,
      'too_large',
      '10,001 points',
    )
    refused(await points('{"points":[]}'), 400, 'invalid', 'no points')
    refused(await points('{"points":[{}]}', { 'content-type': 'text/plain' }), 415, 'unsupported_type', 'another type')
    refused(
      await call(service, 'POST', '/hub', { token, body: { name: 'x'.repeat(2_000_000), lat: 0, lng: 0 } }),
      413,
      'too_large',
      '2 MB where 1 is allowed',
    )
    refused(await call(service, 'GET', `/hubs?q=${'x'.repeat(5_000)}`, { token }), 400, 'invalid', 'a long query')
    await halfARequest(service)
    const large = await points(' '.repeat(17 * 1024 * 1024)).catch((error: Error) => ({
      status: 413,
      json: { status: false, code: 'too_large' },
      error,
    }))
    refused(large, 413, 'too_large', '17 MiB')
  })

  await t.test('shapes', async (t) => {
    const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Shapes' } })).data._id
    const polygon = (...coordinates: number[][][]): Json => ({ type: 'Polygon', coordinates })
    const square = (x: number, y: number, size: number): number[][] => ringOf(x, y, x + size, y + size)
    const many = (count: number): number[][] => {
      const ring = Array.from({ length: count - 1 }, (_, i) => [
        Math.cos((i / (count - 1)) * 2 * Math.PI),
        Math.sin((i / (count - 1)) * 2 * Math.PI),
      ])
      return [...ring, ring[0]]
    }
    const bad: [string, Json, RegExp][] = [
      [
        'bow-tie',
        polygon([
          [0, 0],
          [1, 1],
          [1, 0],
          [0, 1],
          [0, 0],
        ]),
        /cross/,
      ],
      [
        'unclosed',
        polygon([
          [0, 0],
          [1, 0],
          [1, 1],
          [0, 1],
        ]),
        /clos|last/,
      ],
      [
        'three positions',
        polygon([
          [0, 0],
          [1, 0],
          [0, 0],
        ]),
        /4/,
      ],
      ['a hole outside', polygon(square(0, 0, 1), square(5, 5, 1)), /hole|inside|outside/],
      ['a hole that sticks out', polygon(square(0, 0, 2), square(1, 1, 2)), /hole|inside|outside/],
      [
        'out of range',
        polygon([
          [0, 0],
          [1, 0],
          [1, 91],
          [0, 0],
        ]),
        /90/,
      ],
      ['40,000 positions', polygon(many(40_000)), /20,?000/],
      ['another type', { type: 'Point', coordinates: [0, 0] }, /type/],
      [
        'text for numbers',
        polygon([
          ['0', '0'],
          ['1', '0'],
          ['1', '1'],
          ['0', '0'],
        ] as Json),
        /./,
      ],
    ]
    for (const [what, geometry, message] of bad) {
      const answer = await call(service, 'POST', '/geofence', {
        token,
        body: { name: what, geofenceGroupId: group, geometry },
      })
      t.match({ status: answer.status, json: answer.json }, { status: 400, json: { code: 'invalid', message } }, what)
    }
    const accepted: [string, Json][] = [
      ['across ±180', polygon(ringOf(179, 0, -179, 1))],
      ['20,000 positions', polygon(many(20_000))],
      ['a hole that touches', polygon(square(0, 0, 2), square(0, 0, 1))],
    ]
    for (const [what, geometry] of accepted)
      t.equal(
        (await call(service, 'POST', '/geofence', { token, body: { name: what, geofenceGroupId: group, geometry } }))
          .status,
        201,
        what,
      )
    const features = [...bad, ...accepted].map(([name, geometry]) => ({
      type: 'Feature',
      properties: { name },
      geometry,
    }))
    features.push({ type: 'Feature', properties: { name: '' }, geometry: accepted[0][1] }, null as Json, {
      type: 'Feature',
      properties: { name: 'nothing' },
      geometry: null,
    })
    const { data } = await ask(service, 'POST', `/geofences/import?geofenceGroupId=${group}`, {
      token,
      body: { type: 'FeatureCollection', features },
    })
    t.equal(data.created, accepted.length, 'the good features are there')
    t.same(
      data.rejected.map(({ index }: Json) => index),
      [...bad.keys(), bad.length + 3, bad.length + 4, bad.length + 5],
      'the bad ones are named; a Point that says no radius among them',
    )
  })
  await checkWitness(t, witness)
})

/** Says how much will come, sends less, and goes. */
const halfARequest = (service: Service): Promise<void> =>
  new Promise((done, failed) => {
    const socket = connect(service.port, '127.0.0.1', () => {
      socket.write(
        'POST /api/v3/location-history/bulk HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"points":',
        () => socket.destroy(),
      )
    })
    socket.once('close', () => done()).once('error', failed)
  })

interface Target {
  url: string
  hits: () => number
}

const openTarget = async (t: Test, answer: (server: Server) => Parameters<typeof createServer>[1]): Promise<Target> => {
  let hits = 0
  const server: Server = createServer((request, response) => {
    hits++
    request.resume()
    ;(answer(server) as (...args: unknown[]) => void)(request, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}/`, hits: () => hits }
}

test('webhook targets that hang, redirect, fail or lie within: logged, and nobody else waits', {
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t), ['--webhook-schedule', '100ms,100ms'])
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const witness = await openWitness(service)
  const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })).data._id
  await ask(service, 'POST', '/geofence', {
    token,
    body: { name: 'Yard', geofenceGroupId: group, center: { lat: 52, lng: 21 }, radius: 500 },
  })
  const good = await openTarget(t, () => (_, response) => void response.writeHead(204).end())
  const targets = {
    hangs: await openTarget(t, () => () => undefined),
    redirects: await openTarget(t, () => (_, response) => void response.writeHead(302, { location: good.url }).end()),
    fails: await openTarget(t, () => (_, response) => void response.writeHead(500).end('x'.repeat(5_000))),
    gone: await openTarget(t, () => (_, response) => void response.writeHead(410).end()),
    good,
  }
  const automations: { [name: string]: string } = {}
  for (const [name, { url }] of Object.entries(targets)) {
    const body = {
      name,
      event: 'onGeofenceEntry',
      automationType: 'webhook',
      automationDetails: { url },
      rules: { fields: { geofenceGroupId: group } },
    }
    automations[name] = (await ask(service, 'POST', '/automation', { token, body })).data._id
  }
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key
  const trackers = 20
  const points = Array.from({ length: trackers }, (_, i) => ({
    externalId: `t${i}`,
    recordedAt: Date.now(),
    lat: 52,
    lng: 21,
  }))
  await ask(service, 'POST', '/location-history/bulk', { token: key, body: { points } })
  await until('the good deliveries', () => good.hits() === trackers)

  const runs = async (name: string): Promise<Json[]> =>
    (await ask(service, 'GET', `/automation-log?automationId=${automations[name]}&limit=100`, { token })).data
  await until('the failing ones to end', async () => (await runs('fails')).some(({ status }) => status === 'dead'))
  const [dead] = (await runs('fails')).filter(({ status }) => status === 'dead')
  t.equal(dead.attempts.length, 3, 'the schedule allows three attempts')
  t.match(
    dead.attempts[0],
    { statusCode: 500, durationMs: Number, response: /^x{1024}$/ },
    'the first KiB of the answer is kept',
  )
  await until('the redirecting ones to end', async () =>
    (await runs('redirects')).some(({ status }) => status === 'dead'),
  )
  t.match((await runs('redirects')).find(({ status }) => status === 'dead').attempts[0], { statusCode: 302 })
  t.equal(good.hits(), trackers, 'no redirect was followed')
  await until(
    'the gone one to be deactivated',
    async () => (await ask(service, 'GET', `/automation/${automations.gone}`, { token })).data.isActive === false,
  )
  await until('the gone one to have its run listed as ended', async () =>
    (await runs('gone')).some(({ status }) => status === 'dead'),
  )
  t.ok(
    (await runs('gone')).some(({ status, attempts }) => status === 'dead' && attempts.length === 1),
    '410 ends at once',
  )
  t.ok(
    (await runs('hangs')).every(({ status }) => status !== 'succeeded'),
    'the hanging ones have no answer',
  )
  t.ok(targets.hangs.hits() >= 1)
  const succeeded = async (): Promise<Json[]> => (await runs('good')).filter(({ status }) => status === 'succeeded')
  await until('the good ones to be listed as delivered', async () => (await succeeded()).length >= trackers)
  t.equal((await succeeded()).length, trackers)
  await checkWitness(t, witness)
})

test('without --webhook-allow nothing within is reached', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t), ['--webhook-allow', '', '--webhook-schedule', '50ms'])
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })).data._id
  const inner = await openTarget(t, () => (_, response) => void response.writeHead(204).end())
  const { port } = new URL(inner.url)
  const make = (url: string) =>
    call(service, 'POST', '/automation', {
      token,
      body: {
        name: url,
        event: 'onGeofenceEntry',
        automationType: 'webhook',
        automationDetails: { url },
        rules: { fields: { geofenceGroupId: group } },
      },
    })
  const literal = [
    '127.0.0.1',
    '[::1]',
    '10.0.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '192.168.1.1',
    '0.0.0.0',
    '[fd00::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
  ]
  for (const host of literal)
    t.match(await make(`http://${host}:${port}/`), { status: 400, json: { code: 'invalid' } }, host)
  for (const url of ['ftp://example.com/', 'file:///etc/passwd', 'javascript:1', 'no url'])
    t.match(await make(url), { status: 400, json: { code: 'invalid' } }, url)
  const named = await make(`http://localhost:${port}/`)
  if (named.status === 400) return t.pass('a name that is known to be within is refused at once')
  await ask(service, 'POST', '/geofence', {
    token,
    body: { name: 'Yard', geofenceGroupId: group, center: { lat: 52, lng: 21 }, radius: 500 },
  })
  const device = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Own', kind: 'device' } })).data
  await ask(service, 'POST', '/location-history/bulk', {
    token: device.deviceKey,
    body: { points: [{ recordedAt: Date.now(), lat: 52, lng: 21 }] },
  })
  const runs = async (): Promise<Json[]> => (await ask(service, 'GET', '/automation-log', { token })).data
  await until('the run to end', async () => (await runs())[0]?.status === 'dead')
  t.match((await runs())[0].attempts[0], { error: /\w/ }, 'the log says why')
  t.equal(inner.hits(), 0, 'nothing was connected to')
})
