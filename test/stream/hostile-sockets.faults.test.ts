import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { openSocket } from '../support/open-socket.ts'
import { ask, call, signUp, startService, until, type Service } from '../support/service.ts'
import { openWitness } from '../support/witness.ts'
import { folderOf } from '../support/folder-of.ts'

const CONNECTIONS = 2_000
const MB = 1024 * 1024

/** A WebSocket by hand, for clients that do what no library lets them. */
const rawSocket = (service: Service, channel: string, token?: string): Promise<Socket> =>
  new Promise((done, failed) => {
    const socket = connect(service.port, '127.0.0.1')
    socket.once('error', failed)
    const bearer = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
    socket.write(
      `GET /api/v3/${channel} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n${bearer}\r\n`,
    )
    socket.once('data', (head) => {
      if (!String(head).startsWith('HTTP/1.1 101')) return failed(new Error(String(head).slice(0, 100)))
      socket.on('error', () => undefined).resume()
      done(socket)
    })
  })

/** A text frame of a client, masked with zeros. */
const textFrame = (text: string): Buffer => {
  const body = Buffer.from(text)
  const head = Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 0xff, 0, 0, 0, 0])
  return Buffer.concat([head, body])
}

const points = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ externalId: `t${i}`, recordedAt: Date.now(), lat: 52, lng: 21 }))

const checkFrames = async (t: Test, service: Service, key: string): Promise<void> => {
  const header = Buffer.alloc(24)
  header.write('WP')
  header[2] = 1
  header.writeUInt32LE(1, 8)
  const closing: [string, string | Uint8Array, number][] = [
    ['no JSON', '{"type":', 4400],
    ['NaN', '{"type":"points","seq":1,"points":[{"recordedAt":1,"lat":NaN,"lng":0}]}', 4400],
    ['no known type', '{"type":"telemetry"}', 4400],
    ['points that are no list', '{"type":"points","points":{}}', 4400],
    ['a number', '7', 4400],
    ['binary garbage', Buffer.from('garbage that is long enough to hold a header'), 4400],
    ['half a binary frame', header, 4400],
    ['10,001 points', JSON.stringify({ type: 'points', points: Array(10_001).fill(1) }), 1009],
    ['2 MB', 'x'.repeat(2 * MB), 1009],
    ['10 MB', 'x'.repeat(10 * MB), 1009],
  ]
  for (const [what, frame, code] of closing) {
    const socket = await openSocket(service, 'ingest', key)
    await socket.heard(({ type }) => type === 'ready')
    socket.send(frame)
    t.equal(await socket.closed, code, what)
  }
  const falling = await openSocket(service, 'ingest', key)
  for (const seq of [5, 5]) falling.send({ type: 'points', seq, points: points(1) })
  t.equal(await falling.closed, 4400, 'seq that does not rise')

  const open = await openSocket(service, 'ingest', key)
  open.send({ type: 'points', seq: 1, points: points(1), color: 'red' })
  t.match(
    await open.heard(({ type }) => type === 'error'),
    { code: 'invalid', message: /color/ },
    'an unknown field of a frame closes nothing',
  )
  open.send(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  t.match(
    await open.heard(({ type, seq }) => type === 'reject' && seq === 2),
    { rejected: [{ index: 0, code: 'invalid' }] },
    'deep JSON is a bad point',
  )
  open.send({ type: 'points', seq: 10, points: [...points(1), { lat: 1 }] })
  t.match(await open.heard(({ type, seq }) => type === 'reject' && seq === 10), {
    rejected: [{ index: 1, code: 'invalid' }],
  })
  t.ok(await open.heard(({ type, seq }) => type === 'ack' && seq === 10), 'and the good point of the frame is durable')
  open.close()
}

test('frames of every bad kind, connections that do nothing, and readers that do not read', {
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key
  const witness = await openWitness(service)

  const silentSince = performance.now()
  const silent = await openSocket(service, 'ingest')
  await t.test('bad frames', (t) => checkFrames(t, service, key))

  await t.test('credentials', async (t) => {
    const wrong = await openSocket(service, 'ingest', 'nonsense')
    t.equal(await wrong.closed, 4401, 'no token at all')
    const mixed = await openSocket(service, 'live', key)
    t.equal(await mixed.closed, 4403, 'an ingest key on the live channel')
    await t.rejects(rawSocket(service, 'live', 'nonsense'), { message: /401/ }, 'a bad bearer is not upgraded')
    t.equal(await silent.closed, 4408, 'who never authenticates')
    t.ok(performance.now() - silentSince >= 4_900, 'gets its five seconds')
  })

  await t.test('a reader that does not read', async (t) => {
    const reader = await rawSocket(service, 'live', token)
    reader.pause()
    for (let i = 0; i < 16; i++)
      reader.write(textFrame(JSON.stringify({ type: 'subscribe', id: `s${i}`, channels: ['positions'], interval: 20 })))
    const gateway = await openSocket(service, 'ingest', key)
    await gateway.heard(({ type }) => type === 'ready')
    const before = memoryOf(service)
    let seq = 0
    let conflated = 0
    while (conflated === 0 && seq < 150) {
      gateway.send({ type: 'points', seq: ++seq, points: points(1_000) })
      await gateway.heard((message) => message.type === 'ack' && message.seq === seq)
      if (seq % 10 === 0)
        conflated = Number(
          /waymark_live_conflated_total (\d+)/.exec((await call(service, 'GET', '//metrics')).text)?.[1],
        )
    }
    t.ok(conflated > 0, `positions were conflated after ${seq} frames`)
    t.ok(memoryOf(service) - before < 300 * MB, `it grew by ${Math.round((memoryOf(service) - before) / MB)} MB`)
    gateway.close()
    reader.destroy()
  })

  await t.test(`${CONNECTIONS} connections`, async (t) => {
    const sockets: Socket[] = []
    for (let i = 0; i < CONNECTIONS; i += 200)
      sockets.push(
        ...(await Promise.all(
          Array.from({ length: 200 }, () => rawSocket(service, i % 400 === 0 ? 'live' : 'ingest')),
        )),
      )
    t.equal(sockets.length, CONNECTIONS)
    t.equal((await call(service, 'GET', '/user', { token })).status, 200, 'others are served')
    await until('all to be closed, as none authenticates', () => sockets.every(({ destroyed }) => destroyed))
    await until('to be ready', async () => (await call(service, 'GET', '//readyz')).status === 200)
  })

  const { sent, acknowledged, longestMs } = await witness.end()
  t.ok(sent > 10 && acknowledged === sent, `the witness had ${acknowledged} of ${sent} frames acknowledged`)
  t.comment(`its longest wait was ${longestMs} ms`)
})

test('a token that expires in mid-stream closes with 4401, unless it is renewed', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t), ['--token-ttl', '6s'])
  t.teardown(() => service.kill())
  const { email, password } = await signUp(service)
  const stranger = await signUp(service)
  // As late as can be: on a slow machine signing up takes a part of its life.
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const [dying, renewed, other] = await Promise.all([
    openSocket(service, 'live', token),
    openSocket(service, 'live', token),
    openSocket(service, 'live', token),
  ])
  for (const socket of [dying, renewed]) socket.send({ type: 'subscribe', id: 's', channels: ['positions'] })
  await renewed.heard(({ type }) => type === 'snapshot')
  other.send({ type: 'auth', token: stranger.token })
  t.equal(await other.closed, 4403, 'the token of another user')
  const fresh = (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  renewed.send({ type: 'auth', token: fresh })
  t.equal(await dying.closed, 4401)
  renewed.send({ type: 'subscribe', id: 'again', channels: ['positions'] })
  t.ok(await renewed.heard(({ id }) => id === 'again').catch(() => Date.now()), 'the renewed one lived longer')
  t.equal(await renewed.closed, 4401, 'until its new token expired')
  t.match(await call(service, 'GET', '/user', { token }), { status: 401, json: { code: 'unauthenticated' } })
})

const memoryOf = ({ process: { pid } }: Service): number => {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8')
    .split('\n')
    .find((text) => text.startsWith('VmRSS'))
  return Number(line?.match(/\d+/)?.[0]) * 1024
}

test('answers of the history that nobody reads keep no other organization from it', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const [{ token }, stranger] = [await signUp(service), await signUp(service)]
  const body = { name: 'Long way', kind: 'device' }
  const { deviceKey } = (await ask(service, 'POST', '/tracker', { token, body })).data
  const now = Date.now()
  const attributes = { note: 'x'.repeat(100) }
  const pointAt = (second: number) => ({ recordedAt: now - second * 1_000, lat: 52, lng: 21, attributes })
  for (let from = 0; from < 80_000; from += 10_000) {
    const points = Array.from({ length: 10_000 }, (_, i) => pointAt(from + i))
    await ask(service, 'POST', '/location-history/bulk', { token: deviceKey, body: { points } })
  }
  const statusOf = async (path: string, by: string) => (await call(service, 'GET', path, { token: by })).status
  const oldest = `/location-histories?to=${pointAt(79_999).recordedAt}`
  await until('all to be stored', async () => (await ask(service, 'GET', oldest, { token })).data.length === 1)
  const readers = Array.from({ length: 70 }, () => {
    const socket = connect(service.port, '127.0.0.1').on('error', () => undefined)
    socket.write(
      `GET /api/v3/location-histories?format=ndjson HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`,
    )
    return socket.pause()
  })
  const one = '/location-histories?limit=1'
  await until('the organization to have its share open', async () => (await statusOf(one, token)) === 503)
  for (const path of [one, '/trips', '/audit-log']) t.equal(await statusOf(path, stranger.token), 200, path)
  t.equal((await call(service, 'GET', '//readyz')).status, 200)
  for (const reader of readers) reader.destroy()
  await until('the organization to be served again', async () => (await statusOf(one, token)) === 200)
})
