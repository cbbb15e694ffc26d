import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { readRedisUrl } from '../../src/engines/redis-tables/redis-url.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { makeCertificate } from '../support/certificate.ts'
import { folderOf } from '../support/folder-of.ts'
import { freePort } from '../support/free-port.ts'
import { openClient, openRedisServer, withoutRedis as skip } from '../support/redis-server.ts'
import { openSentinels } from '../support/redis-sentinels.ts'
import { until } from '../support/service.ts'
import { storeCheckpoint } from '../support/store-checkpoint.ts'
import { whenUp } from '../support/when-up.ts'

/** A little of everything that a store does. */
const use = async (tables: TableStore): Promise<unknown[]> => {
  await tables.declare({ name: 'things', version: 1, equality: ['color'], range: ['no'], text: ['color'] })
  await tables.declare({ name: 'keys', version: 1, lives: 'row' })
  const row = { table: 'things', scope: 'org', id: 'a', row: { color: 'red', no: 1 } }
  await storeCheckpoint(tables, 'c', { all: 1 }, [row, { ...row, id: 'b', expiresAt: 1 }])
  await tables.putIfAbsent({ table: 'keys', scope: '-', id: 'k', row: { by: 'x' } })
  await tables.increment('org', 'logins', 60_000)
  const { total } = await tables.find('things', 'org', { where: { color: 'red' }, text: 're', total: true, limit: 9 })
  const keys: string[] = []
  for await (const { id } of tables.scanAll('keys')) keys.push(id)
  await tables.declare({ name: 'things@next', version: 1 })
  await storeCheckpoint(tables, 'c@next', { all: 2 }, [{ ...row, table: 'things@next' }])
  await tables.promote(['things'], 'c')
  await tables.reset(['things'], 'c')
  await tables.ping()
  return [total, keys, await tables.checkpoint('c')]
}
const USED = [1, ['k'], undefined]

test('a user with the rights that the docs name does everything, and nothing else', { skip }, async (t) => {
  const docs = readFileSync('docs/redis.md', 'utf8')
  const [, line] = /^(ACL SETUSER waymark [^\n]+)$/m.exec(docs) ?? []
  if (line === undefined) throw new Error('docs/redis.md has no line that makes the user')
  const server = await openRedisServer(folderOf(t))
  const admin = await openClient(server.url)
  t.teardown(async () => {
    admin.destroy()
    await server.kill('SIGKILL')
  })
  await admin.sendCommand(line.replace('<password>', 'secret').split(' '))
  const url = `redis://waymark:secret@127.0.0.1:${server.port}`
  const tables = await openRedisTables({ url })
  t.same(await use(tables), USED)
  await tables.close()
  await admin.set('foreign', '1')
  const user = await openClient(url)
  for (const command of [['GET', 'foreign'], ['FLUSHALL'], ['KEYS', '*'], ['CONFIG', 'SET', 'save', ''], ['SHUTDOWN']])
    await t.rejects(user.sendCommand(command), /NOPERM/, command.join(' '))
  user.destroy()
  await t.rejects(openRedisTables({ url: `redis://waymark:wrong@127.0.0.1:${server.port}` }), { code: 'engine_down' })
  await t.rejects(
    openRedisTables({ url: `${url}?prefix=other` }),
    { code: 'engine_down' },
    'keys of others are out of reach',
  )
})

test('installations with different prefixes share a server and see nothing of each other', { skip }, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const stores = await Promise.all(
    ['one', 'two'].map((name) => openRedisTables({ url: `${server.url}?prefix=${name}` })),
  )
  t.teardown(async () => {
    for (const store of stores) await store.close()
    await server.kill('SIGKILL')
  })
  const [one, two] = stores
  for (const store of stores) await store.declare({ name: 'things', version: 1 })
  await storeCheckpoint(one, 'c', { all: 1 }, [{ table: 'things', scope: 'org', id: 'a', row: {} }])
  t.equal(await two.get('things', 'org', 'a'), undefined)
  t.equal(await two.checkpoint('c'), undefined)
  await two.reset(['things'], 'c')
  t.same(await one.get('things', 'org', 'a'), {})
})

test('a server that would drop rows is refused, with what to do', { skip }, async (t) => {
  for (const policy of ['allkeys-lru', 'volatile-ttl']) {
    const server = await openRedisServer(folderOf(t), ['--maxmemory', '100mb', '--maxmemory-policy', policy])
    await t.rejects(openRedisTables({ url: server.url }), { message: new RegExp(`noeviction \\(it is ${policy}\\)`) })
    await server.kill('SIGKILL')
  }
})

test('a server that cannot be used is refused with its own reason', { skip }, async (t) => {
  const server = await openRedisServer(folderOf(t))
  t.teardown(() => server.kill('SIGKILL'))
  for (const [url, reason] of [
    [server.url.replace('//', '//ada:secret@'), /^WRONGPASS/],
    [`${server.url}/99`, /DB index is out of range/],
    [`redis://127.0.0.1:${await freePort()}`, /ECONNREFUSED/],
  ] as const)
    await t.rejects(openRedisTables({ url }), { code: 'engine_down', cause: { message: reason } })
})

test('a server whose memory is full takes no more, keeps what it has, and goes on when there is room', {
  skip,
}, async (t) => {
  const server = await openRedisServer(folderOf(t), ['--maxmemory', '4mb'])
  const tables = await openRedisTables({ url: server.url })
  t.teardown(async () => {
    await tables.close()
    await server.kill('SIGKILL')
  })
  await tables.declare({ name: 'things', version: 1 })
  const put = (id: string) => tables.commit([{ table: 'things', scope: 'org', id, row: { text: 'x'.repeat(100_000) } }])
  await put('first')
  let stored = 1
  await t.rejects(
    (async () => {
      for (; stored < 100; stored++) await put(`more-${stored}`)
    })(),
    { code: 'engine_down' },
  )
  const admin = await openClient(server.url)
  // Below what the server takes empty: nothing can make room.
  await admin.configSet('maxmemory', '1')
  t.ok(await tables.get('things', 'org', 'first'), 'it still answers')
  t.equal((await tables.find('things', 'org', { limit: 1, total: true })).total, stored)
  await t.rejects(tables.ping(), { code: 'engine_down' }, 'it is not well')
  await admin.configSet('maxmemory', '64mb')
  admin.destroy()
  await put('again')
  await tables.ping()
})

test('a question that somebody ended at the server may be asked again', { skip }, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const tables = await openRedisTables({ url: server.url })
  const admin = await openClient(server.url)
  t.teardown(async () => {
    await tables.close()
    admin.destroy()
    await server.kill('SIGKILL')
  })
  const spin =
    "#!lua name=spin\nredis.register_function{function_name='spin', callback=function() while true do end end, flags={'no-writes'}}"
  await admin.sendCommand(['FUNCTION', 'LOAD', spin])
  await admin.configSet('busy-reply-threshold', '1')
  const { connection } = tables as unknown as { connection: RedisConnection }
  const asked = t.rejects(connection.call('k', ['FCALL', 'spin', '0']), { code: 'engine_down', cause: /killed/ })
  const isEnded = (): Promise<boolean> =>
    admin.sendCommand(['FUNCTION', 'KILL']).then(
      () => true,
      () => false,
    )
  await until('the function to be ended', isEnded)
  await asked
})

test('rediss:// with a certificate of a private authority', { skip }, async (t) => {
  const folder = folderOf(t)
  const tls = makeCertificate(folder)
  if (tls === undefined) return void t.pass('there is no openssl to make a certificate with')
  const port = await freePort()
  const files = ['--tls-cert-file', tls.certFile, '--tls-key-file', tls.keyFile, '--tls-ca-cert-file', tls.certFile]
  const server = await openRedisServer(folder, ['--tls-port', String(port), '--tls-auth-clients', 'no', ...files])
  t.teardown(() => server.kill('SIGKILL'))
  const url = `rediss://127.0.0.1:${port}`
  await t.rejects(openRedisTables({ url }), { code: 'engine_down' }, 'nobody vouches for the certificate')
  const tables = await openRedisTables({ url: `${url}?ca=${encodeURIComponent(tls.certFile)}` })
  t.same(await use(tables), USED)
  await tables.close()
})

test('the master behind sentinels, and the next one', { skip }, async (t) => {
  const group = await openSentinels(folderOf(t))
  t.teardown(() => group.close())
  const [first, ...others] = group.sentinels
  const also = others.map(({ port }) => `127.0.0.1:${port}`).join()
  const url = `redis://127.0.0.1:${first.port}?sentinel=main&also=${also}`
  const tables = await openRedisTables({ url, deadlineMs: 2_000 })
  t.teardown(() => tables.close())
  await tables.declare({ name: 'things', version: 1 })
  await tables.declare({ name: 'keys', version: 1, lives: 'row' })
  const key = { table: 'keys', scope: '-', id: 'k', row: { by: 'x' } }
  t.equal(await tables.putIfAbsent(key), undefined)
  const { connection } = tables as unknown as { connection: RedisConnection }
  const admin = await openClient(group.master.url)
  let isOver = false
  const taking = connection
    .call('k', ['BLPOP', 'queue', '0'])
    .then(
      () => 'answered',
      (error: { code?: string }) => error.code,
    )
    .finally(() => (isOver = true))
  const waitingId = async (): Promise<string | undefined> =>
    /id=(\d+) [^\n]*cmd=blpop/.exec(String(await admin.sendCommand(['CLIENT', 'LIST'])))?.[1]
  await until('it to wait', async () => isOver || (await waitingId()) !== undefined)
  // That connection alone: sentinels that are cut off, too, would take the master for dead.
  const id = await waitingId()
  if (id !== undefined) await admin.sendCommand(['CLIENT', 'KILL', 'ID', id])
  await admin.rPush('queue', 'once')
  t.equal(await taking, 'engine_down')
  t.equal(await admin.lLen('queue'), 1, 'what was cut off is not sent again')
  admin.destroy()
  await until('a connection again', () =>
    tables.ping().then(
      () => true,
      () => false,
    ),
  )
  await storeCheckpoint(tables, 'c', { all: 1 }, [{ table: 'things', scope: 'org', id: 'a', row: { no: 1 } }])
  let losses = 0
  tables.onLoss(() => losses++)
  await first.kill('SIGKILL')
  await group.master.kill('SIGKILL')
  const isThere = (): Promise<boolean> =>
    tables.putIfAbsent(key).then(
      (row) => row?.by === 'x',
      () => false,
    )
  await until('the replica to be the master, with the key that was promised', isThere)
  await until('the failover to be told', () => losses > 0)
  // Until the client has settled on the new master, a commit may be cut off: whoever commits tries again.
  await whenUp(() =>
    storeCheckpoint(tables, 'c', { all: 2 }, [{ table: 'things', scope: 'org', id: 'a', row: { no: 2 } }]),
  )
  t.same(await whenUp(() => tables.get('things', 'org', 'a')), { no: 2 })
})

test('a URL that is wrong says what is', async (t) => {
  const wrong: [string, RegExp][] = [
    ['redis://host?prefx=a', /no parameter prefx; there are prefix, sentinel, also, ca/],
    ['redis://host?prefix={a}', /prefix takes/],
    ['redis://host/x', /number of a database/],
    ['redis://host?ca=/etc/ca.pem', /ca is for rediss/],
    ['rediss://host?ca=/nowhere/ca.pem', /ca cannot be read/],
    ['redis://host?also=a:b', /a:b is not an address/],
  ]
  for (const [url, message] of wrong) t.throws(() => readRedisUrl(url), { message }, url)
  t.match(readRedisUrl('redis://me:p%40ss@[::1]:7000/3?also=b,c:7001'), {
    addresses: [
      { host: '::1', port: 7000 },
      { host: 'b', port: 6379 },
      { host: 'c', port: 7001 },
    ],
    username: 'me',
    password: 'p@ss',
    database: 3,
    prefix: 'wm',
  })
  const started = spawnSync(process.execPath, [
    'dist/src/main.js',
    'start',
    '--data',
    t.testdir(),
    '--tables',
    'redis://127.0.0.1:1?x=1',
  ])
  t.equal(started.status, 2)
  t.match(String(started.stderr), /no parameter x/)
})
