import { Agent, request } from 'node:http'
import { test } from 'tap'
import { Failure } from '../../src/kernel/errors.ts'
import { openDoor, simpleRoute } from './support.ts'

test('paths and methods', async (t) => {
  const door = await openDoor(t, {
    routes: [
      simpleRoute(
        { path: '/hub/{hubId}', params: { hubId: { type: 'string', maxLength: 40 } } },
        async ({ params }) => ({
          body: { data: params },
        }),
      ),
      simpleRoute({ path: '/hub/special' }, async () => ({ body: { data: 'special' } })),
      simpleRoute({
        method: 'POST',
        path: '/both',
        aliases: [
          { path: '/second/name', operationId: 'bothAlias' },
          { method: 'PUT', path: '/both', operationId: 'bothPut' },
        ],
      }),
      simpleRoute({ path: '/up', root: true }),
      simpleRoute({
        path: '/old',
        aliases: [{ path: '/old/{id}/', operationId: 'oldAlias' }],
        params: { id: { type: 'string' } },
      }),
    ],
  })
  const at = async (method: string, path: string) => (await door.call(method, path)).status
  t.same((await door.call('GET', '/hub/a%2Fb%20c')).body, { status: true, data: { hubId: 'a/b c' } })
  t.equal((await door.call('GET', '/hub/special')).body.data, 'special')
  t.equal(await at('GET', '/hub/x/'), 200, 'a trailing slash is accepted')
  t.equal(await at('GET', '/old/7'), 200, 'an alias that ends with a slash answers without it')
  t.equal(await at('GET', `/hub/${'x'.repeat(41)}`), 404, 'a parameter that nothing can have names nothing')
  t.equal(await at('GET', '/hub/%E0%A4%A'), 404, 'broken percent encoding names nothing')
  t.equal(await at('POST', '/both'), 200)
  t.equal(await at('POST', '/second/name'), 200)
  t.equal(await at('PUT', '/both'), 200)
  t.equal((await fetch(`${door.url}/up`)).status, 200)
  t.equal(await at('GET', '/up'), 404, 'a root route is not below the base path')
  const nothing = await door.call('GET', '/nothing')
  t.match(nothing.body, { status: false, code: 'not_found', message: String })
  const wrong = await door.call('GET', '/both')
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'POST, PUT, OPTIONS')
  t.equal(wrong.body.code, 'method_not_allowed')
})

test('HEAD answers as GET without a body', async (t) => {
  const door = await openDoor(t, {
    routes: [simpleRoute({}, async () => ({ body: { data: 'x'.repeat(100) }, headers: { ETag: '"3"' } }))],
  })
  const head = await fetch(`${door.url}/api/v3/thing`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(head.headers.get('etag'), '"3"')
  t.equal(Number(head.headers.get('content-length')), JSON.stringify({ status: true, data: 'x'.repeat(100) }).length)
  t.equal(await head.text(), '')
})

test('a connection answers on after a HEAD', async (t) => {
  const door = await openDoor(t, { routes: [simpleRoute({}, async () => ({ body: { data: 'x' } }))] })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ask = (method: string) =>
    new Promise<(number | string | boolean | undefined)[]>((resolve, reject) => {
      const asked = request(`${door.url}/api/v3/thing`, { method, agent }, (answer) => {
        const said = [method, answer.statusCode, Number(answer.headers['content-length']), asked.reusedSocket]
        answer.resume().on('end', () => resolve(said))
      })
      asked.on('error', reject).end()
    })
  const bytes = JSON.stringify({ status: true, data: 'x' }).length
  t.same(await ask('HEAD'), ['HEAD', 200, bytes, false])
  t.same(await ask('HEAD'), ['HEAD', 200, bytes, true])
  t.same(await ask('GET'), ['GET', 200, bytes, true])
})

test('queries are checked and coerced', async (t) => {
  const query = {
    type: 'object',
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 500, default: 20 },
      near: { type: 'boolean' },
      name: { type: 'array', items: { type: 'string' } },
    },
  }
  const door = await openDoor(t, {
    routes: [
      simpleRoute({ query }, async (request) => ({ body: { data: { ...request.query } } })),
      simpleRoute({ path: '/plain' }),
    ],
  })
  t.same((await door.call('GET', '/thing')).body.data, { limit: 20 })
  t.same((await door.call('GET', '/thing?limit=7&near=true&name=a&name=b+c')).body.data, {
    limit: 7,
    near: true,
    name: ['a', 'b c'],
  })
  t.same((await door.call('GET', '/thing?name=a')).body.data.name, ['a'])
  const refused = async (path: string, errors: unknown) => {
    const answer = await door.call('GET', path)
    t.equal(answer.status, 400, path)
    t.match(answer.body, { status: false, code: 'invalid', message: String, errors }, path)
  }
  await refused('/thing?limit=501', [{ path: '/limit', message: 'must be <= 500' }])
  await refused('/thing?limit=1&limit=2', [{ path: '/limit', message: 'must be a whole number' }])
  await refused('/thing?limt=5', [{ path: '/limt', message: 'is not a known parameter' }])
  await refused('/thing?__proto__=5', [{ path: '/__proto__', message: 'is not a known parameter' }])
  await refused('/plain?a=1', [{ path: '/a', message: 'is not a known parameter' }])
})

test('failures are answered by the table, and nothing else leaks', async (t) => {
  const door = await openDoor(t, {
    routes: [
      simpleRoute({ path: '/forbidden' }, async () => {
        throw new Failure('forbidden', { message: 'No.', extra: { fields: ['salary'] } })
      }),
      simpleRoute({ path: '/busy' }, async () => {
        throw new Failure('overloaded', { retryAfterSeconds: 2.2 })
      }),
      simpleRoute({ path: '/bug' }, async () => {
        throw new Error('password=hunter2')
      }),
    ],
  })
  const forbidden = await door.call('GET', '/forbidden')
  t.equal(forbidden.status, 403)
  t.same(forbidden.body, { fields: ['salary'], status: false, message: 'No.', code: 'forbidden' })
  const busy = await door.call('GET', '/busy')
  t.equal(busy.status, 503)
  t.equal(busy.headers.get('retry-after'), '3')
  const bug = await door.call('GET', '/bug')
  t.equal(bug.status, 500)
  t.equal(bug.body.code, 'internal')
  t.notMatch(JSON.stringify(bug.body), /hunter2/)
  const line = door.lines.find(({ level }) => level === 'error')
  t.equal(line?.fields?.correlationId, bug.headers.get('x-request-id'), 'the log names the request')
  t.match(line?.fields?.error, /hunter2/)
})

test('headers of every answer', async (t) => {
  const door = await openDoor(t, {
    routes: [
      simpleRoute({}, async ({ headers }) => ({
        body: {},
        headers: { 'X-Echo': `${headers.get('If-Match')}\r\nSet-Cookie: a=b` },
      })),
    ],
  })
  const answer = await door.call('GET', '/thing', { headers: { 'if-match': '"4"' } })
  t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(answer.headers.get('x-echo'), '"4" Set-Cookie: a=b', 'a line break makes no header')
  t.equal(answer.headers.get('set-cookie'), null)
})

test('pages of other origins', async (t) => {
  const routes = [simpleRoute({}), simpleRoute({ method: 'POST' })]
  const door = await openDoor(t, { routes, corsOrigins: ['https://map.example'] })
  const from = (origin: string, method = 'GET') =>
    fetch(`${door.url}/api/v3/thing`, { method, headers: { origin, 'access-control-request-method': 'POST' } })
  t.equal((await from('https://map.example')).headers.get('access-control-allow-origin'), 'https://map.example')
  t.equal((await from('https://evil.example')).headers.get('access-control-allow-origin'), null)
  const preflight = await from('https://map.example', 'OPTIONS')
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('content-length'), null, 'an answer without a body has no length')
  t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, POST, HEAD, OPTIONS')
  t.match(preflight.headers.get('access-control-allow-headers'), /Authorization/)
  t.equal((await from('https://evil.example', 'OPTIONS')).headers.get('access-control-allow-methods'), null)
  t.equal((await fetch(`${door.url}/api/v3/none`, { method: 'OPTIONS' })).status, 404)
})

test('a door that would not be right does not open', async (t) => {
  const refused = (routes: Parameters<typeof simpleRoute>[0][], pattern: RegExp) =>
    t.rejects(
      openDoor(t, { routes: routes.map((declaration) => simpleRoute(declaration)) }),
      { message: pattern },
      String(pattern),
    )
  const params = { type: 'string' }
  await refused(
    [
      { path: '/a/{x}', operationId: 'one', params: { x: params } },
      { path: '/a/{y}', operationId: 'two', params: { y: params } },
    ],
    /one and two collide/,
  )
  await refused([{ operationId: 'same' }, { path: '/b', operationId: 'same' }], /operationId same/)
  await refused([{ access: undefined as never }], /who may call it/)
  await refused([{ path: '/a/{x}' }], /parameter x has no schema/)
})

test('a schema that is wrong lets nothing in', async (t) => {
  const handler = async () => {
    t.fail('it was called')
    return { body: { data: null } }
  }
  const door = await openDoor(t, {
    routes: [
      simpleRoute({ method: 'POST', body: { type: 'nonsense' } }, handler),
      simpleRoute({ query: { properties: { a: { type: 'nonsense' } } } }, handler),
    ],
  })
  for (const _again of [1, 2]) {
    t.equal((await door.call('POST', '/thing', { body: {} })).status, 500)
    t.equal((await door.call('GET', '/thing')).status, 500)
  }
})

test('a port that is taken is refused, also by a second door', async (t) => {
  const door = await openDoor(t)
  await t.rejects(openDoor(t, {}, { port: door.port }), /port is taken/)
})
