import { test } from 'tap'
import { BodyBudget, BodyReader } from '../../src/ingress/body.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openDoor, rawClient, simpleRoute } from './support.ts'

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 10 },
    hubLat: { type: 'number', maximum: 90 },
    free: { type: 'object' },
    list: { type: 'array', items: { type: 'integer' } },
  },
  required: ['name'],
  additionalProperties: false,
}
const MIB = 1024 * 1024
const echo = simpleRoute({ method: 'POST', path: '/echo', body: schema, bodyBytesMax: MIB }, async ({ body }) => ({
  status: 201,
  body: { data: body },
}))

test('a JSON body is checked before the handler sees it', async (t) => {
  let handled = 0
  const counted = simpleRoute({ method: 'POST', path: '/counted', body: schema }, async () => ({
    body: { handled: ++handled },
  }))
  const door = await openDoor(t, { routes: [echo, counted] })
  const good = await door.call('POST', '/echo', { body: { name: 'a', free: { any: [1, { deep: true }] } } })
  t.equal(good.status, 201)
  t.same(good.body, { status: true, data: { name: 'a', free: { any: [1, { deep: true }] } } })
  const refused = async (body: unknown, status: number, match: object, headers = {}) => {
    const answer = await door.call('POST', '/counted', { body, headers })
    t.equal(answer.status, status, JSON.stringify(body)?.slice(0, 60))
    t.match(answer.body, { status: false, message: String, ...match })
  }
  await refused({ hubLat: 91, name: 'a' }, 400, {
    code: 'invalid',
    errors: [{ path: '/hubLat', message: 'must be <= 90' }],
  })
  await refused({ hubLat: 91, nmae: 'a' }, 400, {
    errors: [
      { path: '/name', message: 'is required' },
      { path: '/nmae', message: 'is not a known field' },
      { path: '/hubLat', message: 'must be <= 90' },
    ],
  })
  await refused({ name: 'a', list: [1, 'x'] }, 400, {
    errors: [{ path: '/list/1', message: 'must be a whole number' }],
  })
  await refused({ name: 5 }, 400, { errors: [{ path: '/name', message: 'must be a text' }] })
  await refused('{"name":', 400, { code: 'invalid' })
  await refused('', 400, { code: 'invalid' })
  await refused('{"name":"a"}', 415, { code: 'unsupported_type' }, { 'content-type': 'text/plain' })
  await refused(
    '{"name":"a"}',
    415,
    { code: 'unsupported_type' },
    { 'content-type': 'application/json; charset=latin1' },
  )
  await refused(
    '{"name":"a"}',
    415,
    { code: 'unsupported_type', message: /Content-Encoding/ },
    { 'content-encoding': 'gzip' },
  )
  await refused('{"name":"a","__proto__":{"admin":true}}', 400, {
    errors: [{ path: '/__proto__', message: 'is not a known field' }],
  })
  await refused('{"name":"a","free":{"\\u005f_proto__":{"admin":true}}}', 400, {
    errors: [{ path: '/free/__proto__' }],
  })
  await refused('{"name":"a","free":{"constructor":{"prototype":{"admin":true}}}}', 400, {
    errors: [{ path: '/free/constructor' }],
  })
  t.equal(handled, 0)
  t.equal((await door.call('POST', '/counted')).status, 400, 'no body at all')
  t.equal(
    (
      await door.call('POST', '/counted', {
        body: '{"name":"ä"}',
        headers: { 'content-type': 'application/merge-patch+json' },
      })
    ).status,
    200,
  )
  t.equal(({} as { admin?: unknown }).admin, undefined)
})

test('deep JSON is refused before it is parsed', async (t) => {
  const door = await openDoor(t, { routes: [echo] })
  const nested = (depth: number) => `{"name":"a","free":{"x":${'['.repeat(depth)}${']'.repeat(depth)}}}`
  t.equal((await door.call('POST', '/echo', { body: nested(30) })).status, 201)
  const deep = await door.call('POST', '/echo', { body: nested(31) })
  t.equal(deep.status, 400)
  t.match(deep.body.message, /32 levels/)
  t.equal((await door.call('POST', '/echo', { body: '['.repeat(500_000) })).status, 400)
  t.equal(
    (
      await door.call('POST', '/echo', {
        body: `{"name":"[[[[${'['.repeat(3)}\\"","free":{"x":"${'[{'.repeat(100)}"}}`,
      })
    ).status,
    201,
    'brackets in text are text',
  )
})

test('bytes that are no UTF-8', async (t) => {
  const door = await openDoor(t, { routes: [echo] })
  const client = await rawClient(t, door)
  const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])
  client.send(
    `POST /api/v3/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  client.send(body)
  t.match(await client.until(/\r\n\r\n.+/), /^HTTP\/1.1 400 [\s\S]*not UTF-8/)
})

test('many errors of a large body are not all looked for', async (t) => {
  const door = await openDoor(t, { routes: [echo] })
  const answer = await door.call('POST', '/echo', {
    body: { name: 'a', list: Array.from({ length: 100_000 }, () => 'x') },
  })
  t.equal(answer.status, 400)
  t.equal(answer.body.errors.length, 1)
  const small = await door.call('POST', '/echo', { body: { name: 'a', list: Array.from({ length: 100 }, () => 'x') } })
  t.equal(small.body.errors.length, 20, 'and of a small one twenty are named')
})

test('a body over the limit of its route is 413, whatever its client says of its length', async (t) => {
  const small = simpleRoute({ method: 'POST', path: '/small', body: schema, bodyBytesMax: 1000 })
  const door = await openDoor(t, { routes: [small, echo] })
  const body = JSON.stringify({ name: 'x'.repeat(10 * 1024 * 1024) })
  const big = await door.call('POST', '/echo', { body })
  t.equal(big.status, 413)
  t.equal(big.body.code, 'too_large')
  t.equal((await door.call('POST', '/small', { body: JSON.stringify({ name: 'x'.repeat(990) }) })).status, 413)
  const client = await rawClient(t, door)
  client.send(
    'POST /api/v3/small HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  for (let sent = 0; sent < 5; sent++) client.send(`400\r\n${'x'.repeat(1024)}\r\n`)
  client.send('0\r\n\r\n')
  t.match(await client.until(/\r\n\r\n.+/), /^HTTP\/1.1 413 /)
  client.send('GET /api/v3/none HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(await client.until(/404 Not Found/), /404 Not Found/, 'and the connection can be used on')
})

test('a body that anybody may send is small, unless its route says otherwise', async (t) => {
  const open = simpleRoute({ method: 'POST', path: '/open', access: 'public', body: schema })
  const form = simpleRoute({ method: 'POST', path: '/form', access: 'public', body: schema, bodyBytesMax: 1_000_000 })
  const door = await openDoor(t, { routes: [open, form, echo] })
  const body = { name: 'a', free: { text: 'x'.repeat(100_000) } }
  t.equal((await door.call('POST', '/open', { body })).status, 413)
  t.equal((await door.call('POST', '/open', { body: { name: 'a', free: { text: 'x'.repeat(60_000) } } })).status, 200)
  for (const path of ['/form', '/echo']) t.not((await door.call('POST', path, { body })).status, 413, path)
})

test('a body that is declared too large is answered before it comes', async (t) => {
  const door = await openDoor(t, { routes: [echo] })
  const client = await rawClient(t, door)
  client.send(
    `POST /api/v3/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 70000000\r\n\r\n{`,
  )
  const answer = await client.until(/\r\n\r\n.+/)
  t.match(answer, /^HTTP\/1.1 413 [\s\S]*\r\nconnection: close\r\n/)
  const [head, body] = answer.split('\r\n\r\n')
  const length = Number(/content-length: (\d+)/.exec(head)?.[1])
  t.equal(JSON.parse(body.slice(0, length)).code, 'too_large')
  t.equal(await client.closed, answer, 'and nothing follows')
})

test('whoever sends all of a refused body first reads the answer then', async (t) => {
  const door = await openDoor(t, { routes: [echo] })
  for (const lengths of ['Content-Length: 20000000', 'Transfer-Encoding: chunked']) {
    const client = await rawClient(t, door)
    client.socket.pause()
    client.send(`POST /api/v3/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${lengths}\r\n\r\n`)
    if (lengths.endsWith('chunked')) client.send(`${(20_000_000).toString(16)}\r\n`)
    const sent = new Promise<void>((resolve) => client.socket.write(Buffer.alloc(20_000_000, 32), () => resolve()))
    await sent
    if (lengths.endsWith('chunked')) client.send('\r\n0\r\n\r\n')
    client.socket.resume()
    t.match(await client.closed, /^HTTP\/1.1 413 /, lengths)
  }
})

test('a large body is parsed in pieces, with the same result', async (t) => {
  const free = simpleRoute(
    { method: 'POST', path: '/free', body: {}, bodyBytesMax: 64 * 1024 * 1024, takesAnyNames: true },
    async ({ body }) => ({ raw: JSON.stringify(body) }),
  )
  const door = await openDoor(t, { routes: [free] })
  const answerTo = async (body: string): Promise<unknown> => {
    const { status, body: answer } = await door.call('POST', '/free', { body })
    return status === 200 ? JSON.parse(answer as string) : status
  }
  const same = async (text: string): Promise<void> => {
    let expected: unknown
    try {
      expected = JSON.parse(text)
    } catch {
      expected = 400
    }
    t.same(await answerTo(text), expected, `${text.slice(0, 30)}…${text.slice(-30)}`)
  }
  const element = (i: number): unknown => [{ i, text: 'ä"]},\\[', list: [[], {}, [i]] }, i, null, `x${i}`][i % 4]
  const elements = Array.from({ length: 20_000 }, (_, i) => element(i))
  const list = JSON.stringify(elements)
  await same(list)
  await same(
    JSON.stringify({ a: elements, b: [], c: { deep: elements.slice(0, 10) }, d: [1], e: 'end', __proto__x: 1 }),
  )
  await same(`{"a":${list},"a":[1]}`)
  await same(`${' '.repeat(200_000)}[ ]`)
  await same(`{"a":[${' '.repeat(200_000)}],"b":5}`)
  for (const broken of [
    `${list.slice(0, -1)},]`,
    `${list.slice(0, -1)}}`,
    list.slice(0, -1),
    `${list}]`,
    `{"a":${list}`,
  ])
    await same(broken)
  const cut = list.indexOf(',null', 200_000)
  await same(`${list.slice(0, cut)},${list.slice(cut)}`)
  await same(`${list.slice(0, cut)}}${list.slice(cut)}`)
  t.equal(await answerTo(`["${'x'.repeat(5_000_000)}"]`), 413, 'a single element that is too large')
  t.equal(await answerTo(`{"a":[1],"b":"${'x'.repeat(5_000_000)}"}`), 413, 'what stands beside the lists')
})

test('while a large body is parsed, others have their turns', async (t) => {
  let turns = 0
  const points = simpleRoute(
    { method: 'POST', path: '/points', body: { type: 'object' }, bodyBytesMax: 16 * 1024 * 1024 },
    async ({ body }) => ({ body: { data: (body as { points: unknown[] }).points.length } }),
  )
  const door = await openDoor(t, { routes: [points] })
  const point = JSON.stringify({ externalId: 'bus-1', recordedAt: '2026-05-04T09:30:00.000Z', lat: 52.2, lng: 21.01 })
  const count = Math.floor((15 * 1024 * 1024) / (point.length + 1))
  const client = await rawClient(t, door)
  const body = `{"points":[${`${point},`.repeat(count - 1)}${point}]}`
  client.send(
    `POST /api/v3/points HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  await new Promise<void>((resolve) => client.socket.write(body, () => resolve()))
  const turn = (): void => {
    turns++
    timer = setImmediate(turn)
  }
  let timer = setImmediate(turn)
  t.match(await client.until(/\r\n\r\n.+/), new RegExp(`"data":${count}`))
  clearImmediate(timer)
  t.ok(turns > 5, `${turns} turns of the event loop`)
})

test('a body without an end is cut', async (t) => {
  const small = simpleRoute({ method: 'POST', path: '/small', body: schema, bodyBytesMax: 1000 })
  const door = await openDoor(t, { routes: [small] })
  const client = await rawClient(t, door)
  client.send(
    'POST /api/v3/small HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  let sentBytes = 0
  const pump = (): void => {
    while (!client.socket.destroyed && sentBytes < 512 * 1024 * 1024) {
      sentBytes += chunk.length
      if (!client.socket.write(chunk)) return void client.socket.once('drain', pump)
    }
  }
  pump()
  await client.closed
  t.ok(sentBytes < 200 * 1024 * 1024, `cut after ${Math.round(sentBytes / 1e6)} MB`)
})

test('a body that comes byte by byte is kept in few pieces', async (t) => {
  let give: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined
  const response = { onData: (handler: typeof give) => void (give = handler), pause: () => {}, resume: () => {} }
  const options = { clock: systemClock, budget: new BodyBudget(1e6), bytesMax: 1e6, network: 'a', timeoutMs: 60_000 }
  const reader = new BodyReader(response as never, undefined, { ...options, isStreamed: true })
  const sent = Buffer.from(Uint8Array.from({ length: 100_000 }, (_, i) => (i * 7) % 251))
  for (const byte of sent) give(Uint8Array.of(byte).buffer, false)
  give(new ArrayBuffer(0), true)
  const pieces: Buffer[] = []
  for await (const piece of reader.pieces()) pieces.push(piece)
  t.ok(Buffer.concat(pieces).equals(sent))
  t.ok(pieces.length < 1_000, `${pieces.length} pieces of 100,000 bytes`)
})

test('a connection that was held back stays open until its request is over', async (t) => {
  const clock = new FakeClock()
  let give: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined
  const calls: string[] = []
  const response = {
    onData: (handler: typeof give) => void (give = handler),
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
  }
  const options = { clock, budget: new BodyBudget(1e6), bytesMax: 1e6, network: 'a', timeoutMs: 60_000 }
  const reader = new BodyReader(response as never, undefined, { ...options, isStreamed: true })
  give(new ArrayBuffer(600_000), true)
  for await (const piece of reader.pieces()) t.equal(piece.length, 600_000)
  t.same(calls, ['pause', 'resume'])
  // It is cut 10 s after it was resumed for the last time.
  for (let seconds = 0; seconds < 60; seconds += 5) {
    calls.splice(0)
    clock.advance(5_000)
    t.same(calls, ['pause', 'resume'], `after ${seconds + 5} s`)
  }
  reader.release()
  calls.splice(0)
  clock.advance(60_000)
  t.same(calls, [])
})

test('bodies of one network leave room for others', (t) => {
  const budget = new BodyBudget(1_000)
  t.ok(budget.take(750, 'a'))
  t.notOk(budget.take(1, 'a'))
  t.ok(budget.take(250, 'b'))
  t.notOk(budget.take(1, 'c'), 'all together have no more')
  budget.release(700, 'a')
  t.ok(budget.take(700, 'a'))
  t.end()
})

test('half a body is answered 408 and its memory is free again', async (t) => {
  const door = await openDoor(t, { routes: [echo], limits: { bodyTimeoutMs: 60, bodyBytesInFlightMax: 130_000 } })
  const half = await rawClient(t, door)
  half.send(
    `POST /api/v3/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(90_000)}`,
  )
  const busy = await rawClient(t, door)
  busy.send(
    `POST /api/v3/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n${'x'.repeat(90_000)}`,
  )
  t.match(await busy.until(/\r\n\r\n.+/), /^HTTP\/1.1 503 [\s\S]*overloaded/, 'bodies in memory are bounded together')
  const text = await half.closed
  t.match(text, /^HTTP\/1.1 408 /)
  t.match(text, /connection: close/i)
  t.equal((await door.call('POST', '/echo', { body: { name: 'a', free: { x: 'x'.repeat(90_000) } } })).status, 201)
})

test('raw bodies arrive as they are', async (t) => {
  const raw = simpleRoute(
    { method: 'POST', path: '/raw', rawBody: { contentTypes: ['multipart/form-data', 'application/geo+json'] } },
    async ({ body, headers }) => ({
      body: { type: headers.get('content-type'), bytes: (body as Buffer).toString('hex') },
    }),
  )
  const door = await openDoor(t, { routes: [raw] })
  const answer = await door.call('POST', '/raw', {
    body: '\u0001[[',
    headers: { 'content-type': 'multipart/form-data; boundary=Xy' },
  })
  t.same(answer.body, { status: true, type: 'multipart/form-data; boundary=Xy', bytes: '015b5b' })
  t.equal((await door.call('POST', '/raw', { body: 'x', headers: { 'content-type': 'text/csv' } })).status, 415)
})

test('a body that nobody asked for is passed over', async (t) => {
  const door = await openDoor(t, {
    routes: [simpleRoute({ method: 'POST', path: '/rotate' }), simpleRoute({ method: 'DELETE', path: '/it' })],
  })
  t.equal((await door.call('POST', '/rotate', { body: {} })).status, 200)
  t.equal((await door.call('DELETE', '/it', { body: 'whatever' })).status, 200)
  t.equal((await door.call('POST', '/unknown', { body: 'x'.repeat(2_000_000) })).status, 404)
})

test('heads that are too large, and requests that are none', async (t) => {
  const door = await openDoor(t, { routes: [simpleRoute({})] })
  t.equal(
    (await door.call('GET', '/thing', { headers: { cookie: 'x'.repeat(12_000) } })).status,
    200,
    'a browser with many cookies',
  )
  const many = await rawClient(t, door)
  many.send(
    `GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n${Array.from({ length: 5000 }, (_, i) => `X-${i}: ${i}\r\n`).join('')}\r\n`,
  )
  t.notMatch(await many.closed, /^HTTP\/1.1 200/)
  const garbage = await rawClient(t, door)
  garbage.send(Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 131) % 256)))
  t.notMatch(await garbage.closed, /^HTTP\/1.1 200/)
  t.equal((await door.call('GET', '/thing')).status, 200, 'the door goes on')
})

test('a route that takes no body refuses the members of one by name', async (t) => {
  const ping = simpleRoute({ method: 'POST', path: '/ping' }, async () => ({ body: {} }))
  const door = await openDoor(t, { routes: [ping] })
  const call = (body?: unknown) => door.call('POST', '/ping', { token: 'good', body })
  t.equal((await call()).status, 200)
  t.equal((await call({})).status, 200, 'an empty object is no body')
  t.match(await call({ forse: true }), {
    status: 400,
    body: { code: 'invalid', errors: [{ path: '/forse', message: 'is not a known field' }] },
  })
  t.equal((await call([])).status, 400)
})

test('a member that is named twice is refused by its path: clients and proxies differ in which one counts', async (t) => {
  const any = simpleRoute(
    { method: 'POST', path: '/any', body: { type: 'object' }, takesAnyNames: true },
    async ({ body }) => ({ body: { data: body } }),
  )
  const door = await openDoor(t, { routes: [echo, any] })
  const refused = async (body: string, path: string | undefined) =>
    t.match(
      await door.call('POST', '/echo', { body }),
      { status: 400, body: { code: 'invalid', ...(path !== undefined && { errors: [{ path, message: /twice/ }] }) } },
      body.slice(0, 60),
    )
  await refused('{"name":"a","name":"b"}', '/name')
  await refused('{"name":"a","free":{"x":[{"y":1},{"z":"{\\"y\\":1","y":2,"\\u0079" : 3}]}}', '/free/x/1/y')
  await refused('{"name":"a","list":[1],"list":[2]}', '/list')
  await refused('{"name":"a","free":{"":1,"":1}}', '/free/')
  const list = `[${Array.from({ length: 100_000 }, (_, i) => i)}]`
  await refused(`{"name":"a","list":${list},"list":[]}`, undefined)
  await refused(`{"name":"a","list":${list},"free":{"x":1,"x":1}}`, undefined)
  for (const body of [
    '{"name":"a:\\":","free":{"a":{"a":{"a":[{"a":1},{"a":":"}]}}}}',
    `{"name":"a","list":${list},"free":{"x":[{"x":1},{"x":1}]}}`,
  ])
    t.equal((await door.call('POST', '/echo', { body })).status, 201, body.slice(0, 60))
  t.equal((await door.call('POST', '/any', { body: '{"a":1,"a":2}' })).status, 200, 'where one must not lose others')
})
