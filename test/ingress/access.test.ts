import { test } from 'tap'
import { request } from 'undici'
import { FakeClock } from '../support/fake-clock.ts'
import { clientAddresses } from '../../src/ingress/address.ts'
import { Places, RateLimiter } from '../../src/ingress/limits.ts'
import type { Failure } from '../../src/kernel/errors.ts'
import { openDoor, simpleRoute, user } from './support.ts'

test('a route may know callers without a token, for whom limits and permissions hold as well', async (t) => {
  const withoutToken = async ({ headers }: { headers: { get(name: string): string | undefined } }) =>
    headers.get('cookie') === 'yes' ? user() : undefined
  const handler = async () => ({ body: {} })
  const door = await openDoor(t, {
    routes: [
      { ...simpleRoute({ path: '/user', access: 'user' }, handler), withoutToken },
      { ...simpleRoute({ path: '/none', access: { permission: 'edit/nothing' } }, handler), withoutToken },
    ],
    rateLimits: { token: 2 },
  })
  const get = async (path: string, headers: { [name: string]: string }) =>
    (await request(`${door.url}/api/v3${path}`, { headers })).statusCode
  t.equal(await get('/user', {}), 401)
  t.equal(await get('/user', { cookie: 'yes', authorization: 'Bearer bad' }), 401, 'a token counts alone')
  t.equal(await get('/user', { cookie: 'yes' }), 200)
  t.equal(await get('/none', { cookie: 'yes' }), 403)
  t.equal(await get('/user', { cookie: 'yes' }), 429)
})

const body = { type: 'object', required: ['name'] }

test('who may call', async (t) => {
  const of = (path: string, access: Parameters<typeof simpleRoute>[0]['access']) =>
    simpleRoute({ path, access }, async ({ caller }) => ({ body: { kind: caller?.kind ?? null } }))
  const door = await openDoor(t, {
    routes: [
      of('/public', 'public'),
      of('/user', 'user'),
      of('/points', 'points'),
      of('/hubs', { permission: 'view/hub' }),
    ],
  })
  const status = async (path: string, token?: string) => (await door.call('GET', path, { token })).status
  t.same(await Promise.all([status('/public'), status('/public', 'nonsense')]), [200, 200])
  t.same(
    await Promise.all([status('/user'), status('/user', 'bad'), status('/user', 'good'), status('/user', 'device')]),
    [401, 401, 200, 403],
  )
  t.same(
    await Promise.all([status('/points'), status('/points', 'good'), status('/points', 'device')]),
    [401, 200, 200],
  )
  t.same(
    await Promise.all([status('/hubs'), status('/hubs', 'good'), status('/hubs', 'other'), status('/hubs', 'device')]),
    [401, 200, 403, 403],
  )
  const refused = await door.call('GET', '/user')
  t.equal(refused.headers.get('www-authenticate'), 'Bearer')
  t.match(refused.body, { status: false, code: 'unauthenticated', message: String })
  t.match((await door.call('GET', '/hubs', { token: 'other' })).body.message, /administrator/)
  t.equal(
    (await door.call('GET', '/user', { headers: { authorization: 'bearer good' } })).status,
    200,
    'the scheme has no case',
  )
  t.equal((await door.call('GET', '/user', { headers: { authorization: 'Basic good' } })).status, 401)
})

test('the order of checks: 401, 404 outside the rollout, 403, 400', async (t) => {
  const fence = simpleRoute({
    method: 'POST',
    path: '/geofence',
    access: { permission: 'view/hub' },
    rollout: 'geofences',
    body,
  })
  const door = await openDoor(t, { routes: [fence], rollout: ({ organizationId }) => organizationId !== 'org-3' })
  door.callers.set('outside', user({ organizationId: 'org-3', permissions: new Set() }))
  const status = async (token?: string) => (await door.call('POST', '/geofence', { token, body: '{"bad' })).status
  t.equal(await status(), 401)
  t.equal(await status('outside'), 404)
  t.equal(await status('other'), 403)
  t.equal(await status('good'), 400)
})

test('operators', async (t) => {
  const routes = [simpleRoute({ path: '/numbers', root: true, access: 'operator' })]
  const local = await openDoor(t, { routes })
  t.equal((await fetch(`${local.url}/numbers`)).status, 200, 'loopback without a token')
  for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
    t.equal(
      (await fetch(`${local.url}/numbers`, { headers: { [header]: '127.0.0.1' } })).status,
      403,
      `not through a proxy: ${header}`,
    )
  const trusting = await openDoor(t, { routes, trustedProxies: ['127.0.0.0/8'] })
  const claimed = { 'x-forwarded-for': '127.0.0.2' }
  t.equal((await fetch(`${trusting.url}/numbers`, { headers: claimed })).status, 403, 'not by a header that claims it')
  const rebound = { host: `evil.example:${new URL(local.url).port}` }
  t.equal(
    (await request(`${local.url}/numbers`, { headers: rebound })).statusCode,
    403,
    'not by the name of another site',
  )
  const guarded = await openDoor(t, { routes, metricsToken: 'sesame' })
  t.equal((await fetch(`${guarded.url}/numbers`)).status, 401)
  t.equal((await fetch(`${guarded.url}/numbers`, { headers: { authorization: 'Bearer other' } })).status, 401)
  t.equal((await fetch(`${guarded.url}/numbers`, { headers: { authorization: 'Bearer sesame' } })).status, 200)
})

test('a refused upgrade says what limits it', async (t) => {
  const door = await openDoor(t, {
    channels: [{ path: '/live', accepts: ['user'], open: () => ({}) as never }],
    rateLimits: { address: 1 },
  })
  const upgrade = (): Promise<Response> =>
    fetch(`${door.url}/api/v3/live`, { headers: { authorization: 'Bearer bad' } })
  t.equal((await upgrade()).status, 426)
  const refused = await upgrade()
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('ratelimit'), '"address";r=0;t=1')
})

test('rates are limited by token, organization and address', async (t) => {
  const routes = [simpleRoute({ access: 'user' }), simpleRoute({ path: '/open' })]
  const limited = async (rateLimits: object, calls: { path: string; token?: string; from?: string }[]) => {
    const door = await openDoor(t, { routes, rateLimits, trustedProxies: ['127.0.0.1'] })
    door.callers.set('second', user({ jti: 'jti-second' }))
    const answers = []
    for (const { path, token, from } of calls)
      answers.push(
        await door.call('GET', path, { token, headers: from === undefined ? {} : { 'x-forwarded-for': from } }),
      )
    return answers
  }
  const good = { path: '/thing', token: 'good' }
  const byToken = await limited({ token: 2 }, [
    good,
    good,
    good,
    { path: '/thing', token: 'second' },
    { path: '/open' },
  ])
  t.same(
    byToken.map(({ status }) => status),
    [200, 200, 429, 200, 200],
  )
  t.equal(byToken[2].headers.get('retry-after'), '1')
  for (const [i, remaining] of [1, 0, 0].entries()) {
    t.equal(byToken[i].headers.get('ratelimit-policy'), '"token";q=2;w=1')
    t.equal(byToken[i].headers.get('ratelimit'), `"token";r=${remaining};t=1`)
  }
  t.equal(byToken[4].headers.get('ratelimit'), null, 'nothing of a token counts where none is needed')
  t.equal(byToken[2].body.code, 'rate_limited')
  const byOrganization = await limited({ organization: 1 }, [
    good,
    { path: '/thing', token: 'second' },
    { path: '/thing', token: 'other' },
  ])
  t.same(
    byOrganization.map(({ status }) => status),
    [200, 429, 200],
  )
  const open = (from: string) => ({ path: '/open', from })
  const byAddress = await limited({ address: 1 }, [open('203.0.113.1'), open('203.0.113.1'), open('203.0.113.2')])
  t.same(
    byAddress.map(({ status }) => status),
    [200, 429, 200],
  )
  const bySeveral = await limited({ address: 9, token: 5, organization: 2 }, [good, { path: '/thing' }, good, good])
  t.same(
    bySeveral.map(({ status }) => status),
    [200, 401, 200, 429],
  )
  t.equal(bySeveral[0].headers.get('ratelimit-policy'), '"address";q=9;w=1, "token";q=5;w=1, "organization";q=2;w=1')
  t.equal(bySeveral[1].headers.get('ratelimit-policy'), '"address";q=9;w=1')
  t.match(bySeveral[3].headers.get('ratelimit'), /^"address";r=\d;t=\d, "token";r=\d;t=\d, "organization";r=0;t=1$/)
  const neighbours = ['2001:db8::1', '[2001:db8::2]:4711', '2001:db8:0:1::1', '203.0.113.7:80', '203.0.113.7']
  t.same(
    (await limited({ address: 1 }, neighbours.map(open))).map(({ status }) => status),
    [200, 429, 200, 200, 429],
    'a /64 is one client, and a port no part of its address',
  )
})

test('a bucket fills with time, and there are only so many', async (t) => {
  const clock = new FakeClock()
  const limiter = new RateLimiter('token', 0.5, clock)
  limiter.take('a', [])
  const waitSeconds = (): number | undefined => {
    try {
      limiter.take('a', [])
    } catch (error) {
      return (error as Failure).details.retryAfterSeconds
    }
  }
  t.equal(waitSeconds(), 2)
  clock.advance(1_999)
  t.equal(waitSeconds(), 1)
  clock.advance(1)
  limiter.take('a', [])
  for (let i = 0; i < 60_000; i++) limiter.take(`key-${i}`, [])
  limiter.take('a', [])
})

test('places are counted for each key and for all', async (t) => {
  const places = new Places(2, 3)
  t.same([places.take('a'), places.take('a'), places.take('a')], [true, true, false])
  t.same([places.take('b'), places.take('b')], [true, false])
  places.release('a')
  t.equal(places.take('b'), true)
})

test('an address is what trusted proxies say, and no further', async (t) => {
  const addressOf = clientAddresses(['10.0.0.0/8', '127.0.0.1', 'fd00::/8'])
  const isLocal = (...request: Parameters<typeof addressOf>): boolean => addressOf(...request).isLocal
  t.match(addressOf('0000:0000:0000:0000:0000:ffff:7f00:0001', undefined, 'localhost:8080'), {
    address: '127.0.0.1',
    isLocal: true,
  })
  t.match(addressOf('203.0.113.9', '1.2.3.4', undefined), { address: '203.0.113.9', isLocal: false }, 'not from anyone')
  t.equal(addressOf('10.1.1.1', '1.2.3.4', undefined).address, '1.2.3.4')
  t.equal(
    addressOf('10.1.1.1', '6.6.6.6, 1.2.3.4, 10.2.2.2', undefined).address,
    '1.2.3.4',
    'what a client adds itself does not count',
  )
  t.equal(addressOf('10.1.1.1', 'nonsense', undefined).address, '10.1.1.1')
  t.equal(addressOf('fd00::1', '2001:db8::7', undefined).address, '2001:db8::7')
  for (const forwarded of ['127.0.0.1', '127.0.0.2', '::1', '127.0.0.2, 10.2.2.2', ''])
    for (const peer of ['127.0.0.1', '10.1.1.1']) t.notOk(isLocal(peer, forwarded, 'localhost'), `${peer} ${forwarded}`)
  t.throws(() => clientAddresses(['10.0.0.0/99']))
})

test('a client on this machine asks for it by a name of its own', (t) => {
  const addressOf = clientAddresses([], ['waymark.example.com'])
  for (const host of [
    'localhost',
    'LOCALHOST:8080',
    '127.0.0.1:8080',
    '127.9.9.9',
    '[::1]:8080',
    'Waymark.example.com',
  ])
    t.ok(addressOf('127.0.0.1', undefined, host).isLocal, host)
  for (const host of [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example:8080',
    '10.0.0.1',
    '',
    undefined,
  ])
    t.notOk(addressOf('127.0.0.1', undefined, host).isLocal, String(host))
  t.notOk(addressOf('10.0.0.1', undefined, 'localhost').isLocal, 'another machine')
  t.end()
})
