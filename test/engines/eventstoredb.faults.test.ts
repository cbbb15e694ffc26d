import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import type { EventLog } from '../../src/engines/event-log.ts'
import { readEsdbUrl } from '../../src/engines/eventstoredb-log/esdb-url.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import type { NewEvent, RecordedEvent } from '../../src/kernel/event.ts'
import { newEvent } from '../contracts/event-log.ts'
import { makeCertificate } from '../support/certificate.ts'
import { startProcess } from '../support/engine-servers.ts'
import { openEventstoredbServer, type ServerOptions } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { whenUp } from '../support/when-up.ts'
import { seeded } from '../support/random.ts'

const openLog = async (t: Test, url: string, deadlineMs = 10_000): Promise<EventLog> => {
  const log = await openEventstoredbLog({ url, deadlineMs, newId: randomUUID, now: Date.now })
  t.teardown(() => log.close())
  return log
}

/** Where the deadline is so short that a busy machine may miss it: opened again until it is met. */
const openHasty = (t: Test, url: string, deadlineMs: number): Promise<EventLog> =>
  whenUp(() => openLog(t, url, deadlineMs))

/** Repeats an append until its outcome is known, as the port asks. */
const appendSoon = (log: EventLog, ...append: Parameters<EventLog['append']>): ReturnType<EventLog['append']> =>
  whenUp(() => log.append(...append))

const openServer = async (t: Test, options: ServerOptions = {}) => {
  const server = await openEventstoredbServer(options)
  t.teardown(() => server.close())
  return server
}

const idsOf = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id)

/** Keeps what a follower of prefixes is told, as ids. */
const watch = (t: Test, log: EventLog, prefixes: string[]): RecordedEvent[] => {
  const seen: RecordedEvent[] = []
  const ended = new AbortController()
  const following = (async () => {
    for await (const { events } of log.follow({ prefixes }, undefined, ended.signal)) seen.push(...events)
  })()
  t.teardown(async () => {
    ended.abort()
    await following
  })
  return seen
}

const toBoolean = [() => true, () => false] as const

test('an append that the server carries out after it said it timed out is stored once', async (t) => {
  const server = await openServer(t)
  const log = await openLog(t, server.url)
  await log.append('a-1', [newEvent()], 'none')
  for (const expected of [0, 'any'] as const) {
    const events = [newEvent(), newEvent()]
    const head = await log.head('a-1')
    const { struck } = server
    server.fault = 'lateCommit'
    const appending = log.append('a-1', events, expected)
    await until('the late commit', () => server.struck > struck)
    server.fault = undefined
    t.equal((await appending).revision, head + 2)
    t.same(idsOf(await log.read('a-1', head + 1, 10)), idsOf(events))
  }
})

test('a lost answer is an unknown outcome at the deadline, and the same append answers what became of it', async (t) => {
  const server = await openServer(t)
  const log = await openHasty(t, server.url, 300)
  server.fault = 'lostAnswer'
  const events = [newEvent()]
  await t.rejects(log.append('a-1', events, 'none'), { code: 'engine_down' })
  server.fault = undefined
  t.equal((await appendSoon(log, 'a-1', events, 'none')).revision, 0)
  t.same(idsOf(await whenUp(() => log.read('a-1', 0, 10))), idsOf(events))
})

test('an append at any revision whose answer was lost is stored once, by a server that forgot its ids, whatever was appended since', async (t) => {
  const path = `${folderOf(t)}/log`
  const port = await freePort()
  const first = await openEventstoredbServer({ path, port })
  const log = await openHasty(t, first.url, 3_000)
  await appendSoon(log, 'a-1', [newEvent()], 'any')
  const other = await openLog(t, first.url)
  for (let i = 0; i < 70; i++) await other.append('a-1', [newEvent()], 'any')
  first.fault = 'lostAnswer'
  const events = [newEvent(), newEvent()]
  await t.rejects(log.append('a-1', events, 'any'), { code: 'engine_down' })
  first.fault = undefined
  for (let i = 0; i < 70; i++) await other.append('a-1', [newEvent()], 'any')
  await appendSoon(log, 'a-1', [newEvent()], 'any')
  await first.close()
  await openServer(t, { path, port })
  let stood = -1
  const isTaken = async (): Promise<boolean> => {
    stood = await log.append('a-1', events, 'any').then(
      ({ revision }) => revision,
      () => -1,
    )
    return stood >= 0
  }
  await until('the server to be back', isTaken)
  t.equal(stood, 72)
  t.same(idsOf(await whenUp(() => log.read('a-1', 71, 2))), idsOf(events))
  t.equal(await whenUp(() => log.head('a-1')), 143)
})

test('an append at any revision is stored once where its server dies after thousands of others', async (t) => {
  const path = `${folderOf(t)}/log`
  const port = await freePort()
  const first = await openEventstoredbServer({ path, port })
  const log = await openLog(t, first.url, 240_000)
  first.fault = 'lostAnswer'
  const events = [newEvent()]
  const appending = log.append('a-1', events, 'any')
  await until('the append whose answer is lost', () => first.struck > 0)
  first.fault = undefined
  for (let round = 0; round < 21; round++)
    await Promise.all(Array.from({ length: 100 }, (_, i) => log.append(`b-${round * 100 + i}`, [newEvent()], 'none')))
  await first.close()
  await openServer(t, { path, port })
  t.equal((await appending).revision, 0)
  t.same(idsOf(await log.read('a-1', 0, 10)), idsOf(events))
})

test('a cluster that falls silent: no call waits longer for a node than its deadline, and all goes on after it', async (t) => {
  const server = await openServer(t)
  const proxy = await TcpProxy.open(server.port)
  t.teardown(() => proxy.close())
  server.leaderPort = proxy.port
  const log = await openHasty(t, `esdb://127.0.0.1:${proxy.port},127.0.0.1:1?tls=false`, 300)
  const seen = watch(t, log, ['a-'])
  await appendSoon(log, 'a-1', [newEvent()], 'none')
  await until('its follower', () => seen.length === 1)
  proxy.silence()
  let done = 0
  for (let round = 0; round < 3; round++) {
    const calls = [log.ping(), log.read('a-1', 0, 1), log.append('a-1', [newEvent()], 'any')]
    for (const call of calls) void call.catch((error) => (done += error.code === 'engine_down' ? 1 : 0))
    // The client itself looks for a node for 50 s and more.
    await until('all calls to be given up', () => done === 3 * (round + 1), 40_000)
  }
  await t.rejects(openLog(t, `esdb://127.0.0.1:${proxy.port},127.0.0.1:1?tls=false`, 300), { code: 'engine_down' })
  proxy.heal()
  await until('an answer', () => log.ping().then(...toBoolean))
  const last = newEvent()
  await appendSoon(log, 'a-1', [last], 'any')
  await until('its follower', () => idsOf(seen).includes(last.id))
})

test('a silent server: every call ends by its deadline, appends behind one that hangs too, and all goes on after it', async (t) => {
  const server = await openServer(t)
  const log = await openHasty(t, server.url, 300)
  const seen = watch(t, log, ['a-'])
  await appendSoon(log, 'a-1', [newEvent()], 'none')
  server.fault = 'silence'
  const calls: Promise<unknown>[] = [
    log.append('a-1', [newEvent()], 0),
    log.append('a-1', [newEvent()], 0),
    log.append('b-1', [newEvent()], 'none'),
    log.read('a-1', 0, 10),
    log.head('a-1'),
    log.ping(),
    log.truncateBefore('a-1', 1),
    log.erase('a-1'),
    Promise.resolve(log.reclaim?.()),
  ]
  for (const outcome of await Promise.allSettled(calls))
    t.match(outcome, { status: 'rejected', reason: { code: 'engine_down' } })
  server.fault = undefined
  await whenUp(() => log.ping())
  await appendSoon(log, 'a-1', [newEvent()], 0)
  await until('the follower', () => seen.length === 2)
})

test('connections that die unseen, and new ones that are taken and not answered, are given up when nothing is heard', async (t) => {
  const server = await openServer(t)
  const proxy = await TcpProxy.open(server.port)
  t.teardown(() => proxy.close())
  const log = await openHasty(t, `esdb://127.0.0.1:${proxy.port}?tls=false`, 300)
  const seen = watch(t, log, ['a-'])
  await appendSoon(log, 'a-1', [newEvent()], 'none')
  await until('its follower', () => seen.length === 1)
  for (let round = 1; round <= 2; round++) {
    proxy.silence()
    // The first call notices that the connection is dead, the next ones wait for one that nobody answers.
    for (let call = 0; call < 3; call++) {
      await t.rejects(log.ping(), { code: 'engine_down' })
      await t.rejects(log.append('a-1', [newEvent()], 'any'), { code: 'engine_down' })
    }
    proxy.speak()
    await until('an answer over another connection', () => log.ping().then(...toBoolean))
    await appendSoon(log, 'a-1', [newEvent()], 'any')
    await until('its follower', () => seen.length === 1 + round)
  }
  t.equal(seen.length, 3)
})

test('a log is closed although a stream of the client never comes to its end', async (t) => {
  const server = await openServer(t)
  const log = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: Date.now })
  const { client } = (log as unknown as { connection: { client: { disposableStreams: Set<Readable> } } }).connection
  client.disposableStreams.add(new Readable({ read: () => undefined, destroy: () => undefined }))
  await log.close()
  await t.rejects(log.ping(), { code: 'engine_down' })
})

test('a server that is not ready yet, and one that is slow, keep the order and lose nothing', async (t) => {
  const server = await openServer(t)
  const log = await openLog(t, server.url)
  const seen = watch(t, log, ['a-'])
  server.fault = 'notReady'
  const given = Array.from({ length: 6 }, () => newEvent())
  const appends = given.map((event, index) => log.append('a-1', [event], index === 0 ? 'none' : index - 1))
  await t.rejects(log.read('a-1', 0, 1), { code: 'engine_down' })
  await until('an append to be refused', () => server.struck > 4)
  server.fault = undefined
  server.delayMs = 80
  await Promise.all(appends)
  await until('the follower', () => seen.length === 6)
  t.same(idsOf(seen), idsOf(given))
})

test('whoever asks a node that does not lead goes on with the one that does', async (t) => {
  const [leader, follower] = [await openServer(t), await openServer(t)]
  const log = await openLog(t, follower.url)
  follower.fault = 'notLeader'
  follower.leaderPort = leader.port
  const { revision } = await log.append('a-1', [newEvent()], 'none')
  t.equal(revision, 0)
  const direct = await openLog(t, leader.url)
  t.equal((await direct.read('a-1', 0, 10)).length, 1)
  const seen = watch(t, log, ['a-'])
  await until('its follower', () => seen.length === 1)
})

test('a cluster is found by any of its nodes, and by one name', async (t) => {
  const [leader, other] = [await openServer(t), await openServer(t)]
  other.leaderPort = leader.port
  const urls = [
    `esdb+discover://127.0.0.1:${other.port}?tls=false`,
    `esdb://127.0.0.1:1,127.0.0.1:${other.port}?tls=false&gossipTimeout=1`,
  ]
  for (const [index, url] of urls.entries()) {
    const log = await openLog(t, url)
    await log.append(`a-${index}`, [newEvent()], 'none')
    const direct = await openLog(t, leader.url)
    t.equal((await direct.read(`a-${index}`, 0, 10)).length, 1, url)
  }
  const noCluster = `esdb+discover://127.0.0.1:1?tls=false&maxDiscoverAttempts=2`
  await t.rejects(openLog(t, noCluster), { code: 'engine_down' })
})

test('TLS with a user: the right one may; what is wrong with another, its rights or the URL is said at the start', async (t) => {
  const files = makeCertificate(folderOf(t))
  if (files === undefined) return t.comment('there is no openssl to make a certificate')
  const tls = { key: readFileSync(files.keyFile), certificate: readFileSync(files.certFile) }
  const server = await openServer(t, { tls, user: 'way mark:s@cret' })
  const node = `127.0.0.1:${server.port}`
  const at = `${node}?tlsCAFile=${encodeURIComponent(files.certFile)}`
  const log = await openLog(t, `esdb://way%20mark:s%40cret@${at}`)
  await log.append('a-1', [newEvent()], 'none')
  const seen = watch(t, log, ['a-'])
  await until('its follower', () => seen.length === 1)
  await log.truncateBefore('a-1', 1)
  await t.rejects(openLog(t, `esdb://way%20mark:other@${at}`), /does not know the user way mark, or the password/)
  await t.rejects(openLog(t, `esdb://${at}`), /user/)
  const unknown = await openLog(t, `esdb://way%20mark:s%40cret@${node}`).catch((error) => error)
  t.match(unknown, { code: 'engine_down', cause: { message: /certificate/ } }, 'an authority that it does not know')
  const [absent, mistaken] = [`${node}?tlsCAFile=/not/there`, `${at}&keepAliveTimeout=soon`]
  await t.rejects(openLog(t, `esdb://a:b@${absent}`), /^--log cannot be used: tlsCAFile.*not found/)
  await t.rejects(openLog(t, `esdb://a:b@${mistaken}`), /^--log: keepAliveTimeout must be a whole number$/)
  server.fault = 'forbidden'
  await t.rejects(openLog(t, `esdb://way%20mark:s%40cret@${at}`), /way mark may not read \$all/)
})

test('a URL with a parameter or a password that cannot be read is refused in one sentence, without the password', async (t) => {
  const written: string[] = []
  t.intercept(process.stderr, 'write', { value: (text: string | Uint8Array) => written.push(String(text)) > 0 })
  const wrong: [string, RegExp][] = [
    ['esdb://ada:s3cret@h:2113?keepAlive=5', /^--log has no parameter keepAlive; there are tls, tlsCAFile, /],
    ['esdb://ada:s3cret@h?tlsVerifyCert=false', /no parameter tlsVerifyCert/],
    ['esdb://ada:s3cret@h?throw-on-append-failure=false', /no parameter throw-on-append-failure/],
    ['esdb://ada:s3cret@h?nodePreference=follower', /nodePreference must be leader/],
    ['esdb://ada:s3cret@h?TLS=no', /tls must be true or false/],
    ['esdb://ada:my@s3cret@h:2113', /must have user:password before the @.* %40/],
    ['esdb://ada:my:s3cret@h:2113', /percent-encoded/],
    ['esdb://ada:s3cret%@h', /percent-encoded/],
    ['esdb://ada@h:2113', /must have user:password/],
    ['esdb://ada:12?s3cret@h:2113', /no parameter of that name/],
    ['esdb://ada:my?s3cret@h:2113', /must name a host/],
  ]
  for (const [url, sentence] of wrong) {
    const { message } = await openLog(t, url, 200).then(
      () => new Error('taken'),
      (error: Error) => error,
    )
    t.match(message, sentence, url)
    t.notMatch(message, /s3cret|\n/, `${url}: ${message}`)
  }
  t.same(written, [], 'the client package writes nothing')
  t.match(readEsdbUrl('esdb+discover://a%40b:c%3Ad@one,two:2114?tls_ca_file=%2Fca&nodePreference=Leader'), {
    credentials: { username: 'a@b', password: 'c:d' },
    isTls: true,
    caFile: '/ca',
    firstNode: 'one:2113',
  })
})

test('a server that takes connections and says nothing is refused by the deadline', async (t) => {
  const taken: Socket[] = []
  const server = createServer((socket) => void taken.push(socket))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.close()
    for (const socket of taken) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  const opening = openEventstoredbLog({
    url: `esdb://127.0.0.1:${port}?tls=false`,
    deadlineMs: 200,
    newId: randomUUID,
    now: Date.now,
  })
  await t.rejects(opening, { code: 'engine_down', cause: { message: 'no answer in 200 ms' } })
})

test('servers that may lose events are refused by their version', async (t) => {
  const outcome = async (version: string): Promise<string> => {
    const server = await openServer(t, { version })
    return openLog(t, server.url).then(
      () => 'taken',
      (error) => String(error.message),
    )
  }
  for (const version of ['23.10.6', '23.10.7', '24.10.5', '25.0.1', '25.1.0', '26.0.0'])
    t.equal(await outcome(version), 'taken', version)
  for (const version of ['22.10.9', '23.10.5', '24.2.0', '24.10.4', '25.0.0'])
    t.match(await outcome(version), new RegExp(`EventStoreDB ${version.replaceAll('.', '\\.')}.*23\\.10\\.6`), version)
})

test('killed and cut at random moments under load: what was acknowledged is there once, and followers saw it in order', async (t) => {
  const random = seeded(11)
  const path = `${folderOf(t)}/log`
  const script = 'dist/test/support/eventstoredb/main.js'
  let running = await startProcess(script, path)
  const proxy = await TcpProxy.open(running.port)
  t.teardown(async () => {
    await proxy.close()
    running.child.kill('SIGKILL')
  })
  const log = await openLog(t, `esdb://127.0.0.1:${proxy.port}?tls=false`)
  const streams = ['a-1', 'a-2', 'b-1', 'b-2']
  const all = watch(t, log, ['a-', 'b-'])
  const some = watch(t, log, ['b-'])
  let isOver = false
  const acknowledged = new Map(streams.map((stream) => [stream, [] as string[]]))
  /** Repeats what has an unknown outcome, as the port asks. */
  const write = async (stream: string): Promise<void> => {
    for (let head = -1; !isOver; ) {
      const events: NewEvent[] = Array.from({ length: 1 + Math.floor(random() * 3) }, () => newEvent())
      for (;;) {
        try {
          head = (await log.append(stream, events, head < 0 ? 'none' : head)).revision
          break
        } catch (error) {
          if ((error as { code?: string }).code !== 'engine_down') throw error
        }
      }
      acknowledged.get(stream)?.push(...idsOf(events))
    }
  }
  const writing = Promise.all(streams.map(write))
  const count = (): number => [...acknowledged.values()].reduce((sum, ids) => sum + ids.length, 0)
  for (let kill = 0; kill < 3; kill++) {
    const before = count()
    const share = 40 + random() * 80
    await until('some appends', () => count() >= before + share)
    if (kill === 1) proxy.cut()
    running.child.kill('SIGKILL')
    running = await startProcess(script, path)
    proxy.target = running.port
  }
  const before = count()
  await until('appends after the last kill', () => count() >= before + 40)
  isOver = true
  await writing
  for (const stream of streams) t.strictSame(idsOf(await log.read(stream, 0, 10_000)), acknowledged.get(stream), stream)
  for (const [seen, own] of [
    [all, streams],
    [some, ['b-1', 'b-2']],
  ] as const) {
    const total = own.reduce((sum, stream) => sum + (acknowledged.get(stream)?.length ?? 0), 0)
    await until('the follower', () => seen.length >= total)
    t.equal(seen.length, total)
    for (const stream of own)
      t.strictSame(idsOf(seen.filter((event) => event.stream === stream)), acknowledged.get(stream))
    t.ok(seen.every(({ position }, index) => index === 0 || position > seen[index - 1].position))
  }
})
