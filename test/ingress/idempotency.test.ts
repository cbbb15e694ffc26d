import { test } from 'tap'
import { Failure } from '../../src/kernel/errors.ts'
import type { Route } from '../../src/kit/http/route.ts'
import { openDoor, simpleRoute, user } from './support.ts'

const posting = (declaration: Partial<Route>, handler: Parameters<typeof simpleRoute>[1]): Route =>
  simpleRoute(
    { method: 'POST', access: 'user', body: { type: 'object' }, bodyRequired: false, ...declaration },
    handler,
  )

const key = (value: string) => ({ 'idempotency-key': value })

test('the same key and body get the first answer again', async (t) => {
  let runs = 0
  const route = posting({ aliases: [{ path: '/alias', operationId: 'alias' }] }, async ({ ids }) => ({
    status: 201,
    body: { run: ++runs, id: ids.next() },
    headers: { ETag: '"1"' },
  }))
  const door = await openDoor(t, {
    routes: [route, posting({ path: '/unkept', idempotent: false }, async () => ({ body: { run: ++runs } }))],
  })
  const first = await door.call('POST', '/thing', { token: 'good', body: { a: 1 }, headers: key('k1') })
  const again = await door.call('POST', '/thing', { token: 'good', body: { a: 1 }, headers: key('k1') })
  t.equal(again.status, 201)
  t.same(again.body, first.body)
  t.equal(again.headers.get('etag'), '"1"')
  t.same(
    (await door.call('POST', '/alias', { token: 'good', body: { a: 1 }, headers: key('k1') })).body,
    first.body,
    'an alias is the same operation',
  )
  t.equal(runs, 1)
  const other = await door.call('POST', '/thing', { token: 'good', body: { a: 2 }, headers: key('k1') })
  t.equal(other.status, 422)
  t.equal(other.body.code, 'key_reused')
  t.equal(
    (await door.call('POST', '/thing', { token: 'other', body: { a: 1 }, headers: key('k1') })).body.run,
    2,
    'of another caller it is another request',
  )
  t.equal((await door.call('POST', '/thing', { token: 'good', body: { a: 1 }, headers: key('k2') })).body.run, 3)
  t.equal((await door.call('POST', '/unkept', { token: 'good', body: {}, headers: key('k1') })).body.run, 4)
  t.equal((await door.call('POST', '/unkept', { token: 'good', body: {}, headers: key('k1') })).body.run, 5)
  t.equal((await door.call('POST', '/thing', { token: 'good', body: {}, headers: key('x'.repeat(256)) })).status, 400)
})

test('the same key and body get the first file again; one that broke off, or is large, is made anew', async (t) => {
  let runs = 0
  let size = 1
  let fails = false
  const file = async function* (run: number) {
    yield new Uint8Array([0xff, run])
    if (fails) throw new Error('the engine is gone')
    yield 'x'.repeat(size)
  }
  const seen: string[] = []
  const route = posting({}, async ({ ids }) => {
    seen.push(ids.next())
    return { stream: file(++runs), headers: { 'Content-Type': 'text/csv' } }
  })
  const door = await openDoor(t, { routes: [route] })
  const send = async (name: string): Promise<Buffer> => {
    const headers = { ...key(name), authorization: 'Bearer good', 'content-type': 'application/json' }
    const answer = await fetch(`${door.url}/api/v3/thing`, { method: 'POST', headers, body: '{}' })
    t.equal(answer.headers.get('content-type'), 'text/csv')
    return Buffer.from(await answer.arrayBuffer())
  }
  const first = await send('small')
  t.same(first.subarray(0, 2), [0xff, 1])
  t.same(await send('small'), first)
  t.equal(runs, 1)
  fails = true
  await t.rejects(send('broken'))
  fails = false
  t.equal((await send('broken'))[1], 3)
  size = 400 * 1024
  await send('large')
  t.equal((await send('large'))[1], 5)
  t.equal(seen[4], seen[3], 'with the ids of the first run')
})

test('a form that is sent again is the same one, whatever boundary the client draws', async (t) => {
  let runs = 0
  const route = simpleRoute(
    { method: 'POST', access: 'user', rawBody: { contentTypes: ['multipart/form-data'] } },
    async () => ({ body: { run: ++runs } }),
  )
  const door = await openDoor(t, { routes: [route] })
  const send = async (boundary: string, text: string, quote = '') => {
    const body = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--${boundary}--\r\n`
    const headers = { ...key('form'), 'content-type': `multipart/form-data; boundary=${quote}${boundary}${quote}` }
    return door.call('POST', '/thing', { token: 'good', body, headers })
  }
  t.match(await send('----first-boundary', 'x'), { status: 200, body: { run: 1 } })
  t.match(await send('another-boundary-1', 'x', '"'), { status: 200, body: { run: 1 } })
  t.match(await send('another-boundary-2', 'y'), { status: 422 })
  t.match(await send('short', 'x'), { status: 422 }, 'one that a text may hold is a part of it')
})

test('a request that is still running is 409', async (t) => {
  let finish = (): void => undefined
  const door = await openDoor(t, {
    routes: [posting({}, () => new Promise((resolve) => (finish = () => resolve({ body: { data: 1 } }))))],
  })
  const first = door.call('POST', '/thing', { token: 'good', headers: key('k') })
  let second = await door.call('POST', '/thing', { token: 'good', headers: key('k') })
  if (second.status === 200) t.fail('ran twice')
  t.equal(second.status, 409)
  t.equal(second.body.code, 'in_progress')
  finish()
  t.equal((await first).status, 200)
  second = await door.call('POST', '/thing', { token: 'good', headers: key('k') })
  t.equal(second.status, 200)
})

test('failures that last are kept, failures that pass are not, but their ids are', async (t) => {
  const ids: string[] = []
  let failure: Failure | undefined
  const route = posting({}, async (request) => {
    ids.push(request.ids.next())
    if (failure !== undefined) throw failure
    return { body: { data: 'done' } }
  })
  const door = await openDoor(t, { routes: [route] })
  const call = (name: string) => door.call('POST', '/thing', { token: 'good', headers: key(name) })
  failure = new Failure('conflict')
  t.equal((await call('lasting')).status, 409)
  failure = undefined
  t.match((await call('lasting')).body, { code: 'conflict' })
  for (const passing of [new Failure('engine_down'), new Failure('rate_limited')]) {
    ids.length = 0
    failure = passing
    t.equal((await call(passing.code)).status, passing.status)
    failure = undefined
    t.equal((await call(passing.code)).status, 200)
    t.equal(ids.length, 2)
    t.equal(ids[0], ids[1], 'the log would recognise the repeat')
  }
})

test('public routes keep keys for an address', async (t) => {
  const routes = [posting({ access: 'public', path: '/signup' }, async ({ ids }) => ({ body: { id: ids.next() } }))]
  const door = await openDoor(t, { routes, trustedProxies: ['127.0.0.0/8'] })
  const from = (address: string) =>
    door.call('POST', '/signup', { headers: { ...key('k'), 'x-forwarded-for': address } })
  const [one, two, again] = [await from('203.0.113.1'), await from('203.0.113.2'), await from('203.0.113.1')]
  t.same(again.body, one.body)
  t.not(two.body.id, one.body.id)
})

test('a token that its own call revoked reads the answer of that call, and nothing else', async (t) => {
  let runs = 0
  const route = posting({ path: '/auth/switch', revokesToken: true }, async () => {
    door.callers.delete('good')
    return { body: { token: `new-${++runs}` } }
  })
  const door = await openDoor(t, { routes: [route, posting({}, async () => ({ body: {} }))] })
  const first = await door.call('POST', '/auth/switch', { token: 'good', body: { to: 'org-2' }, headers: key('k') })
  t.equal(first.body.token, 'new-1')
  const again = await door.call('POST', '/auth/switch', { token: 'good', body: { to: 'org-2' }, headers: key('k') })
  t.equal(again.status, 200)
  t.same(again.body, first.body)
  t.equal(
    (await door.call('POST', '/auth/switch', { token: 'good', body: { to: 'org-3' }, headers: key('k') })).status,
    401,
    'another body',
  )
  t.equal(
    (await door.call('POST', '/auth/switch', { token: 'good', body: { to: 'org-2' }, headers: key('other') })).status,
    401,
    'another key',
  )
  t.equal((await door.call('POST', '/auth/switch', { token: 'good', body: { to: 'org-2' } })).status, 401, 'no key')
  t.equal((await door.call('POST', '/thing', { token: 'good', headers: key('k') })).status, 401, 'another route')
  t.equal(runs, 1)
})

test('a call that revoked its token and died before its answer was kept comes to its end when it is repeated', async (t) => {
  const seeds: unknown[] = []
  const route = posting({ path: '/auth/switch', revokesToken: true }, async ({ ids }) => {
    seeds.push(ids.next())
    door.callers.delete('good')
    if (seeds.length === 1) throw new Error('the process dies here')
    return { body: { token: 'new' } }
  })
  const former = user()
  const authenticateRevoked = async (token: string) => {
    if (token !== 'good') throw new Failure('unauthenticated')
    return former
  }
  const door = await openDoor(t, { routes: [route], authenticateRevoked })
  const send = (body: object, name = 'k') =>
    door.call('POST', '/auth/switch', { token: 'good', body, headers: key(name) })
  t.equal((await send({ to: 'org-2' })).status, 500)
  t.equal((await send({ to: 'org-3' })).status, 401, 'another body')
  t.equal((await send({ to: 'org-2' }, 'other')).status, 401, 'another key: a revoked token begins nothing')
  t.match(await send({ to: 'org-2' }), { status: 200, body: { token: 'new' } })
  t.equal(seeds[0], seeds[1], 'with the ids of the first run')
  t.match(await send({ to: 'org-2' }), { status: 200, body: { token: 'new' } })
  t.equal(seeds.length, 2)
})

test('a write waits for its read models, and says so when they do not follow', async (t) => {
  const waited: unknown[] = []
  let applied: boolean | Error = true
  const wrote = { position: 7, types: ['hubCreated'] }
  const door = await openDoor(t, {
    routes: [posting({}, async () => ({ body: {}, wrote }))],
    settle: async (...args) => {
      waited.push(args)
      if (applied instanceof Error) throw applied
      return applied
    },
  })
  t.equal((await door.call('POST', '/thing', { token: 'good' })).headers.get('waymark-pending'), null)
  t.same(waited, [[wrote, 2000, undefined]])
  applied = false
  t.equal((await door.call('POST', '/thing', { token: 'good' })).headers.get('waymark-pending'), 'true')
  applied = new Error('the tables are down')
  const answer = await door.call('POST', '/thing', { token: 'good' })
  t.equal(answer.status, 200, 'after an append there is no error answer')
  t.equal(answer.headers.get('waymark-pending'), 'true')
})
