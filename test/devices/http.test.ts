import { Readable } from 'node:stream'
import { request } from 'undici'
import { test, type Test } from 'tap'
import { ask, call, signUp, startService, until, type Json, type Service } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

interface Sent {
  status: number
  text: string
  headers: { [name: string]: string | string[] | undefined }
}

/** What an app sends: no header of a browser, and the content type that it has. */
const send = async (
  service: Service,
  path: string,
  {
    body,
    headers = {},
    method = 'POST',
  }: { body?: unknown; headers?: { [name: string]: string }; method?: 'GET' | 'POST' } = {},
): Promise<Sent> => {
  const isText = body === undefined || typeof body === 'string'
  const answer = await request(`${service.url}/in${path}`, {
    method,
    headers: isText ? headers : { 'content-type': 'application/json', ...headers },
    body: isText ? body : JSON.stringify(body),
  })
  return { status: answer.statusCode, text: await answer.body.text(), headers: answer.headers }
}

const open = async (t: Test, flags: string[] = []) => {
  const service = await startService(folderOf(t), flags)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const made: Json = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Van', externalId: 'van' } })).data
  const points = async (trackerId = made._id): Promise<Json[]> =>
    (await ask(service, 'GET', `/location-histories?trackerId=${trackerId}&order=asc`, { token })).data
  const stored = (count: number, trackerId = made._id) =>
    until(`${count} points`, async () => (await points(trackerId)).length === count)
  const trackerNow = async (id = made._id): Promise<Json> =>
    (await ask(service, 'GET', `/tracker/${id}`, { token })).data
  return { service, token, tracker: made, key: made.deviceKey as string, points, stored, trackerNow }
}

const seconds = (ago: number): number => Math.floor(Date.now() / 1000) - ago
const basicOf = (password: string): string => `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}`

test('apps over HTTP: each protocol, each place of the key, each answer', { timeout: 300_000 }, async (t) => {
  const { service, token, key, tracker, points, stored, trackerNow } = await open(t)
  const location = (ago: number) => ({ _type: 'location', lat: 52.1, lon: 21.1, tst: seconds(ago), vel: 36, batt: 50 })
  const ok = { status: 200, text: '[]' }

  await t.test('the key is found in its order, and a wrong one is 401', async (t) => {
    t.match(await send(service, '/owntracks', { body: location(100), headers: { authorization: `Bearer ${key}` } }), ok)
    t.match(await send(service, '/owntracks', { body: location(99), headers: { authorization: basicOf(key) } }), ok)
    t.match(await send(service, `/owntracks?key=${key}`, { body: location(98) }), ok)
    t.match(await send(service, `/owntracks?id=${key}`, { body: location(97) }), ok)
    t.match(await send(service, `/owntracks/${key}`, { body: location(96) }), ok)
    t.match(await send(service, `/owntracks/${key}/?u=jane&d=phone`, { body: location(95) }), ok)
    const tst = seconds(94)
    const form = `lat=52.1&lon=21.1&timestamp=${tst}&speed=10`
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', undefined]) {
      const headers = type === undefined ? undefined : { 'content-type': type }
      for (const name of ['id', 'deviceid', 'key']) {
        const sent = await send(service, '/traccar', { body: `${name}=${key}&${form}`, headers })
        t.equal(sent.status, 200, `${name} of a form, ${type}`)
      }
    }
    const inChunks = { method: 'POST', body: Readable.from([`id=${key}&`, form]) } as const
    t.equal((await request(`${service.url}/in/traccar`, inChunks)).statusCode, 200, 'a form of a length not told')
    t.match(
      await send(service, `/owntracks/${key}`, { body: { ...location(94), tst, tid: '&key=none&' } }),
      ok,
      'no form',
    )
    await stored(7)
    const wrong = `${key.slice(0, -4)}AAAA`
    for (const path of ['/owntracks', `/owntracks/${wrong}`, `/owntracks/nothing`, `/owntracks?key=${wrong}`])
      t.equal((await send(service, path, { body: location(90) })).status, 401, path)
    const bearer = { authorization: `Bearer ${wrong}` }
    t.equal(
      (await send(service, `/owntracks/${key}`, { body: location(90), headers: bearer })).status,
      401,
      'the first counts',
    )
    const basic = { authorization: basicOf(wrong) }
    t.equal((await send(service, `/owntracks/${key}`, { body: location(90), headers: basic })).status, 401)
    t.match((await points())[0], { speed: 10, battery: 0.5 }, 'km/h became m/s, percent a part')
    t.equal((await points())[6].speed, 5.14, 'knots became m/s')
  })

  await t.test('what each client waits for', async (t) => {
    const feature = (ago: number, lat = 52.2) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [21.2, lat] },
      properties: { timestamp: new Date(Date.now() - ago * 1000).toISOString(), speed: 3, device_id: 'mine' },
    })
    const bearer = { authorization: `Bearer ${key}` }
    const overland = await send(service, '/overland', {
      body: { locations: [feature(80), feature(79)] },
      headers: bearer,
    })
    t.match(overland, { status: 200, text: '{"result":"ok"}' })
    const json = {
      device_id: 'mine',
      location: { timestamp: new Date(Date.now() - 78_000).toISOString(), coords: { latitude: 52.2, longitude: 21.2 } },
    }
    t.equal((await send(service, `/traccar/${key}`, { body: json })).status, 200)
    t.equal(
      (await send(service, `/osmand/${key}?lat=52.2&lon=21.2&timestamp=${seconds(77)}&speed=7`, { method: 'GET' }))
        .status,
      200,
    )
    t.equal(
      (await send(service, `/traccar/${key}?id=mine&lat=52.2&lon=21.2&timestamp=${seconds(76)}`, { method: 'GET' }))
        .status,
      200,
    )
    const uplink = {
      end_device_ids: { dev_eui: 'A1' },
      uplink_message: {
        decoded_payload: { latitude: 52.2, longitude: 21.2 },
        received_at: new Date(Date.now() - 75_000).toISOString(),
      },
    }
    t.equal((await send(service, `/ttn/${key}`, { body: uplink })).status, 200)
    const event = {
      time: new Date(Date.now() - 74_000).toISOString(),
      deviceInfo: { devEui: 'A1' },
      object: { latitude: 52.2, longitude: 21.2 },
    }
    t.equal((await send(service, `/chirpstack/${key}?event=up`, { body: event })).status, 200)
    await stored(14)
    t.equal((await send(service, `/owntracks/${key}`)).text, '[]', 'a message of zero length')
    const waypoints = Array.from({ length: 2_000 }, (_, i) => ({
      _type: 'waypoint',
      lat: 52,
      lon: 21,
      desc: `Stop ${i}`,
    }))
    t.match(await send(service, `/owntracks/${key}`, { body: { _type: 'waypoints', waypoints } }), ok, 'many regions')
    t.equal((await send(service, `/osmand/${key}?id=mine`, { method: 'GET' })).status, 200, 'a heartbeat')
    t.equal((await trackerNow()).rejected, undefined, 'nothing was refused so far')
  })

  await t.test('what can never be stored is answered as taken, and counts', async (t) => {
    t.match(await send(service, `/owntracks/${key}`, { body: { _type: 'location', lat: 52, lon: 21, tst: 1_000 } }), ok)
    t.match((await trackerNow()).rejected, { count: 1, lastCode: 'too_old' })
    t.match(await send(service, `/owntracks/${key}`, { body: { ...location(60), lat: 0, lon: 0 } }), ok)
    t.match((await trackerNow()).rejected, { count: 2, lastCode: 'invalid' })
    t.match(await send(service, `/owntracks/${key}`, { body: 'no JSON' }), ok)
    t.match(await send(service, `/owntracks/${key}`, { body: { ...location(60), tst: seconds(-3 * 86_400) } }), ok)
    const { rejected } = await trackerNow()
    t.match(rejected, { count: 4, lastCode: 'too_far_ahead' })
    t.ok(Math.abs(Date.parse(rejected.lastAt) - Date.now()) < 60_000)
    const features = [52.3, 91, 52.4].map((lat, i) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [21, lat] },
      properties: { timestamp: new Date(Date.now() - 50_000 + i * 1000).toISOString() },
    }))
    const batch = await send(service, `/overland/${key}`, { body: { locations: features } })
    t.match(batch, { status: 200, text: '{"result":"ok"}' }, 'the good ones of a batch are kept')
    await stored(16)
    t.equal((await trackerNow()).rejected.count, 5)
    const [listed] = (await ask(service, 'GET', '/trackers?externalId=van', { token })).data
    t.equal(listed.rejected.count, 5, 'the list shows it too')
    for (const query of ['lat=1e400&lon=21', 'lat=52&lon=Infinity'])
      t.equal((await send(service, `/osmand/${key}?${query}`, { method: 'GET' })).status, 200, query)
    t.equal((await trackerNow()).rejected.count, 7, 'a number without end counts, and blocks no queue')
  })

  await t.test('an ingest key: the client names its tracker', async (t) => {
    const keyWith = async (autoCreate: boolean): Promise<string> =>
      (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gate', autoCreate } })).data.key
    const strict = await keyWith(false)
    const unknown = await send(service, `/owntracks/${strict}`, {
      body: { ...location(40), topic: 'owntracks/jane/phone' },
    })
    t.match(
      unknown,
      { status: 503, headers: { 'retry-after': /\d+/ }, text: /unknown_tracker/ },
      'somebody can make it',
    )
    t.equal((await send(service, `/owntracks/${strict}`, { body: location(40) })).status, 503, 'without a name')
    await ask(service, 'POST', '/tracker', { token, body: { name: 'Jane', externalId: 'owntracks/jane/phone' } })
    t.match(
      await send(service, `/owntracks/${strict}`, { body: { ...location(40), topic: 'owntracks/jane/phone' } }),
      ok,
    )
    const headers = { 'x-limit-u': 'jane', 'x-limit-d': 'phone' }
    t.match(await send(service, `/owntracks/${strict}`, { body: location(39), headers }), ok)
    const free = await keyWith(true)
    t.equal((await send(service, `/traccar/${free}?id=new-van&lat=1&lon=2&timestamp=${seconds(30)}`)).status, 200)
    const [found] = (await ask(service, 'GET', '/trackers?externalId=new-van', { token })).data
    t.equal(found.kind, 'device')
    await stored(1, found._id)
  })

  await t.test('the key is in no line of the log', async (t) => {
    t.notOk(service.lines.some((line) => line.includes(key)))
    t.equal(
      (await points()).every(({ trackerId }) => trackerId === tracker._id),
      true,
    )
  })

  await t.test('provisioning: a new key in the form that each app reads, and the old one ends', async (t) => {
    const provision = async (app: string): Promise<Json> =>
      (await ask(service, 'POST', `/tracker/${tracker._id}/provisioning`, { token, body: { app } })).data
    const owntracks = await provision('owntracks')
    t.equal((await send(service, `/owntracks/${key}`, { body: location(20) })).status, 401, 'the key before has ended')
    const inline = decodeURIComponent(owntracks.qr.replace('owntracks:///config?inline=', ''))
    const configuration = JSON.parse(Buffer.from(inline, 'base64').toString())
    t.match(configuration, {
      _type: 'configuration',
      mode: 3,
      url: `${service.url}/in/owntracks`,
      deviceId: 'van',
      tid: 'VA',
    })
    const headers = { authorization: basicOf(configuration.password) }
    t.match(await send(service, '/owntracks', { body: location(19), headers }), ok)
    const traccar = new URL((await provision('traccar')).qr)
    t.same([traccar.searchParams.get('id'), traccar.searchParams.get('interval')], ['van', '10'])
    t.equal(
      (await send(service, `${traccar.pathname.slice(3)}?id=van&lat=1&lon=2&timestamp=${seconds(18)}`)).status,
      200,
    )
    const overland = new URL((await provision('overland')).qr)
    t.match([overland.protocol, overland.host], ['overland:', 'setup'])
    t.equal(overland.searchParams.get('url'), `${service.url}/in/overland`)
    const bearer = { authorization: `Bearer ${overland.searchParams.get('token')}` }
    t.equal((await send(service, '/overland', { body: { locations: [] }, headers: bearer })).status, 200)
    const { url } = await provision('osmand')
    const filled = ['1.5', '2.5', String(Date.now()), '5', '100', '3', '90'].reduce(
      (text: string, value, i) => text.replace(`{${i}}`, value),
      url,
    )
    t.equal((await request(filled)).statusCode, 200)
    t.match((await provision('gpslogger')).url, /%LAT.*%LON.*%TIMESTAMP/)
    t.equal(
      (await call(service, 'POST', `/tracker/${tracker._id}/provisioning`, { token, body: { app: 'fax' } })).status,
      400,
    )
  })
})

test('overload makes an app wait: no status that one of them deletes on', { timeout: 300_000 }, async (t) => {
  const { service, key } = await open(t, ['--org-points-per-second', '1', '--rate-limit-token', '3'])
  const statuses = new Set<number>()
  for (let i = 0; i < 20; i++)
    statuses.add(
      (await send(service, `/owntracks/${key}`, { body: { _type: 'location', lat: 1, lon: 2, tst: seconds(100 - i) } }))
        .status,
    )
  t.same([...statuses].sort(), [200, 503])
})
