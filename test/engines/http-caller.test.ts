import { createServer, type RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import { addressGuard } from '../../src/engines/address-guard.ts'
import type { HttpCall } from '../../src/engines/http-caller.ts'
import { PLATFORM_ADDRESSES } from '../../src/engines/platform-addresses.ts'
import { undiciCaller } from '../../src/engines/undici/undici-caller.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

const serve = async (t: Test, listener: RequestListener): Promise<number> => {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as { port: number }).port
}

const open = (t: Test, options: Partial<Parameters<typeof undiciCaller>[0]> = {}) => {
  const caller = undiciCaller({ clock: systemClock, allow: ['127.0.0.0/8'], ...options })
  t.teardown(() => caller.close())
  return caller
}

const call = (url: string, more: Partial<HttpCall> = {}): HttpCall => ({
  url,
  headers: ['content-type', 'application/json'],
  body: '{}',
  deadlineMs: 5_000,
  answerBytesMax: 1024,
  ...more,
})

test('special addresses of both families are refused, others pass', (t) => {
  const passes = addressGuard([])
  const refused = [
    '127.0.0.1',
    '127.1.2.3',
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '100.127.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '192.88.99.1',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::a00:1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    'fec0::1',
    '64:ff9b::7f00:1',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2002:808:808::1',
    '2001::1',
    '2001:db8::1',
    '100::1',
    '100:0:0:1::1',
    '168.63.129.16',
    '::ffff:168.63.129.16',
    '::ffff:a83f:8110',
    '192.0.0.192',
    '100.100.100.200',
    '169.254.170.2',
    '161.26.0.10',
    '166.9.1.1',
    '199.36.153.4',
    '199.36.153.11',
    'fd00:ec2::254',
    'fd20:ce::254',
    '64:ff9b::a83f:8110',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    '2001:0:4136:e378::a9fe:a9fe',
    '::ffff:0:808:808',
    '4000::1',
    '200::1',
    'e000::1',
    '192.31.196.1',
    '192.52.193.1',
    '192.175.48.1',
    '2620:4f:8000::1',
    '3fff::1',
    '5f00::1',
    'example.com',
    '',
  ]
  for (const address of refused) t.notOk(passes(address), address)
  for (const address of [
    '8.8.8.8',
    '1.1.1.1',
    '172.32.0.1',
    '100.128.0.1',
    '168.63.129.17',
    '199.36.153.12',
    '::ffff:8.8.8.8',
    '2606:4700:4700::1111',
    '2a00:1450:4001::1',
  ])
    t.ok(passes(address), address)
  const allowing = addressGuard(['127.0.0.0/8', 'fd00::/8', '::ffff:10.0.0.0/104'])
  for (const address of ['127.9.9.9', '::ffff:127.0.0.1', 'fd00::1', '10.1.1.1']) t.ok(allowing(address), address)
  for (const address of ['192.168.0.1', 'fc00::1', '::1', '::127.0.0.1']) t.notOk(allowing(address), address)
  for (const { cidr } of PLATFORM_ADDRESSES) t.notOk(passes(cidr.split('/')[0]), cidr)
  t.ok(addressGuard(['168.63.129.16/32'])('168.63.129.16'), 'what configuration allows')
  t.throws(() => addressGuard(['127.0.0.1/99']))
  t.end()
})

test('a url that names a refused address is refused in every notation', (t) => {
  const { refusal } = open(t, { allow: [] })
  const hosts = [
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '0x7f.1',
    '127.1',
    '127.0.0.1.',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[::127.0.0.1]',
    '0',
    '0.0.0.0',
    '10.1',
    '169.254.169.254',
    '192.168.0.1',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    'localhost',
    'LOCALHOST.',
    'x.localhost',
    '[fe80::1]',
    '[fd00::1]',
    '100.64.1.1',
  ]
  for (const host of hosts)
    for (const scheme of ['http', 'https']) t.ok(refusal(`${scheme}://${host}/hook`), `${scheme} ${host}`)
  for (const url of [
    'ftp://example.com',
    'file:///etc/passwd',
    'example.com',
    '',
    'http://',
    'javascript:alert(1)',
    'https://user:pass@example.com/',
  ])
    t.ok(refusal(url), url)
  for (const url of ['https://example.com/hook', 'http://8.8.8.8:8080/x?y=z', 'https://[2606:4700:4700::1111]/'])
    t.equal(refusal(url), undefined, url)
  t.equal(open(t).refusal('http://127.0.0.1:1/'), undefined, 'what configuration allows')
  t.end()
})

test('a name is judged by the address that is connected to', async (t) => {
  let asked = 0
  const port = await serve(t, (_, response) => response.writeHead(200).end(`${++asked}`))
  const lookup: Parameters<typeof undiciCaller>[0]['lookup'] = (hostname, _, done) => {
    if (hostname === 'inside.example') return done(null, [{ address: '127.0.0.1', family: 4 }])
    if (hostname === 'mixed.example')
      return done(null, [
        { address: '10.0.0.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
        { address: 'fd00::1', family: 6 },
      ])
    done(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), [])
  }
  const refusing = open(t, { allow: [], lookup })
  const toInside = await refusing.post(call(`http://inside.example:${port}/`))
  t.match(toInside, { kind: 'failed', error: /its name does not exist, or leads to a special address/ })
  t.match(await refusing.post(call(`http://127.0.0.1:${port}/`)), { kind: 'failed', error: /may not be called/ })
  const toNowhere = await refusing.post(call(`http://nowhere.example:${port}/`))
  t.same(toNowhere, toInside, 'nobody can tell which names exist inside')
  t.equal(asked, 0)
  const allowing = open(t, { lookup })
  t.match(await allowing.post(call(`http://inside.example:${port}/`)), { kind: 'answered', statusCode: 200 })
  t.match(
    await allowing.post(call(`http://mixed.example:${port}/`)),
    { kind: 'answered', statusCode: 200 },
    'only the address that passes is tried',
  )
  t.equal(asked, 2)
})

test('redirects are not followed; answers are cut; headers go in the order given', async (t) => {
  const seen: string[][] = []
  const port = await serve(t, (request, response) => {
    seen.push(request.rawHeaders)
    if (request.url === '/moved') return response.writeHead(302, { location: `http://127.0.0.1:${port}/inside` }).end()
    if (request.url === '/long') return response.writeHead(200).end('x'.repeat(1_000_000))
    response.writeHead(503, { 'retry-after': '120' }).end('later')
  })
  const caller = open(t)
  t.match(
    await caller.post(call(`http://127.0.0.1:${port}/moved`, { headers: ['x-a', '1', 'x-b', '2', 'x-a', '3'] })),
    { kind: 'answered', statusCode: 302 },
  )
  t.equal(seen.length, 1)
  t.same(
    seen[0].filter((_, i) => seen[0][i - (i % 2)].startsWith('x-')),
    ['x-a', '1', 'x-b', '2', 'x-a', '3'],
  )
  const long = await caller.post(call(`http://127.0.0.1:${port}/long`))
  t.match(long, { kind: 'answered', statusCode: 200 })
  t.equal(long.kind === 'answered' && long.answer.length, 1024)
  t.same(await caller.post(call(`http://127.0.0.1:${port}/`)), {
    kind: 'answered',
    statusCode: 503,
    retryAfter: '120',
    answer: 'later',
  })
})

test('who hangs before or after the status is given up at the deadline', async (t) => {
  const clock = new FakeClock()
  let asked = 0
  const port = await serve(t, (request, response) => {
    asked++
    if (request.url === '/body') response.writeHead(200).write('begun')
  })
  const caller = open(t, { clock, lookup: () => undefined })
  const silent = caller.post(call(`http://127.0.0.1:${port}/silent`))
  const body = caller.post(call(`http://127.0.0.1:${port}/body`))
  const unresolved = caller.post(call('http://never.example/'))
  await until('both are there', () => asked === 2)
  await new Promise((soon) => setImmediate(soon))
  clock.advance(4_999)
  clock.advance(1)
  t.match(await silent, { kind: 'failed', error: 'no answer within 5 s' })
  t.match(await unresolved, { kind: 'failed', error: 'no answer within 5 s' })
  t.match((await body).kind, /answered|failed/)
})

test('connections are kept and a slow answer holds nobody up', async (t) => {
  const ports = new Set<number | undefined>()
  const port = await serve(t, (request, response) => {
    if (request.url === '/slow') return
    ports.add(request.socket.remotePort)
    response.writeHead(204).end()
  })
  const caller = open(t)
  const slow = caller.post(call(`http://127.0.0.1:${port}/slow`, { deadlineMs: 2_000 }))
  for (let i = 0; i < 20; i++) t.match(await caller.post(call(`http://127.0.0.1:${port}/`)), { statusCode: 204 })
  t.ok(ports.size <= 2, `${ports.size} connections`)
  t.match(await slow, { kind: 'failed' })
  t.match(await caller.post(call('http://127.0.0.1:1/')), { kind: 'failed', error: /ECONNREFUSED/ })
})

test('after the end nothing is called', async (t) => {
  let calls = 0
  const port = await serve(t, (_, response) => {
    calls++
    response.end('ok')
  })
  const caller = open(t)
  await caller.close()
  const url = `http://127.0.0.1:${port}/`
  t.match(await caller.post(call(url)), { kind: 'failed', error: 'the caller is closed' })
  await t.rejects(caller.fetch(url, {}), { message: 'the caller is closed' })
  t.equal(calls, 0)
})
