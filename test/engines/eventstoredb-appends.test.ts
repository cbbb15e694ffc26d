import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import type { EventLog } from '../../src/engines/event-log.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { newEvent } from '../contracts/event-log.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { whenUp } from '../support/when-up.ts'

// All appends of a connection share a few calls.
const openLog = async (t: Test, url: string, deadlineMs = 120_000): Promise<EventLog> => {
  const log = await openEventstoredbLog({ url, deadlineMs, newId: randomUUID, now: Date.now })
  t.teardown(() => log.close())
  return log
}

const openServer = async (t: Test) => {
  const server = await openEventstoredbServer()
  t.teardown(() => server.close())
  return server
}

const atOnce = (log: EventLog, count: number, bytes = 10): Promise<{ revision: number }>[] =>
  Array.from({ length: count }, (_, i) =>
    log.append(`a-${i}`, [{ ...newEvent(), data: new Uint8Array(bytes), isJson: false }], 'none'),
  )

test('a connection that breaks rejects no append of another', async (t) => {
  const [quiet, broken] = [await openServer(t), await openServer(t)]
  const proxy = await TcpProxy.open(broken.port)
  t.teardown(() => proxy.close())
  const log = await openLog(t, quiet.url, 2_000)
  const other = await openLog(t, `esdb://127.0.0.1:${proxy.port}?tls=false`)
  quiet.fault = broken.fault = 'lostAnswer'
  const events = [newEvent()]
  // Would succeed at its next attempt if it were told of the other connection's end.
  const waits = t.rejects(log.append('a-1', events, 'none'), { code: 'engine_down' })
  const repeated = other.append('a-1', [newEvent()], 'none')
  await until('both to wait for an answer', () => quiet.struck === 1 && broken.struck === 1)
  quiet.fault = broken.fault = undefined
  proxy.cut()
  t.equal((await repeated).revision, 0)
  await waits
  t.equal((await whenUp(() => log.append('a-1', events, 'none'))).revision, 0)
  t.equal((await whenUp(() => log.read('a-1', 0, 10))).length, 1)
})

test('so many appends are in flight, and so many bytes; the rest waits its turn, and all are repeated after a cut', async (t) => {
  const open = async () => {
    const server = await openServer(t)
    const proxy = await TcpProxy.open(server.port)
    t.teardown(() => proxy.close())
    const log = await openLog(t, `esdb://127.0.0.1:${proxy.port}?tls=false`)
    server.fault = 'silence'
    return { server, proxy, log }
  }
  const [many, large] = [await open(), await open()]
  const appends = [...atOnce(many.log, 1_400), ...atOnce(large.log, 8, 900_000)]
  await until('as many as may be', () => many.server.appends.owed >= 1_024)
  await until('as many bytes as may be', () => large.server.appends.owed >= 4)
  t.equal(many.server.appends.owed, 1_024)
  t.equal(many.server.appends.calls, 16, 'the library hands over one message of a call in a turn')
  t.equal(large.server.appends.owed, 4)
  for (const { server, proxy } of [many, large]) {
    server.fault = undefined
    proxy.cut()
  }
  t.ok((await Promise.all(appends)).every(({ revision }) => revision === 0))
})

test('thousands of appends to a silent server are given up together, and all go on after it', async (t) => {
  const server = await openServer(t)
  const log = await openLog(t, server.url, 3_000)
  server.fault = 'silence'
  for (const outcome of await Promise.allSettled(atOnce(log, 1_400)))
    if (outcome.status === 'fulfilled' || outcome.reason.code !== 'engine_down') t.fail('an answer of a silent server')
  server.fault = undefined
  const isBack = (): Promise<boolean> =>
    log.append('b-1', [newEvent()], 'any').then(
      () => true,
      () => false,
    )
  await until('an append', isBack)
  await until('calls that hang to end', () => server.appends.calls === 1)
})

test('an append that is never answered holds up no other, and the call on which it hangs is left', async (t) => {
  const server = await openServer(t)
  const log = await openLog(t, server.url, 4_000)
  server.fault = 'lostAnswer'
  let isGivenUp = false
  void log.append('b-1', [newEvent()], 'none').catch(({ code }) => (isGivenUp = code === 'engine_down'))
  await until('it to be sent', () => server.struck === 1)
  server.fault = undefined
  await Promise.all(atOnce(log, 5))
  t.equal(server.appends.calls, 6, 'one for each that was in flight')
  // Where something is heard the connection itself is kept.
  await until('it to be given up', () => log.ping().then(() => isGivenUp))
  await log.append('b-2', [newEvent()], 'none')
  t.equal(server.appends.begun, 6, 'over a call that has nothing in flight')
  await until('the call before to end', () => server.appends.calls === 5)
  await log.close()
  await until('the last one to end', () => server.appends.calls === 0)
})

test('a node that does not lead ends the call: all that was in flight goes to the leader, once', async (t) => {
  const [leader, follower] = [await openServer(t), await openServer(t)]
  const log = await openLog(t, follower.url)
  await log.append('b-1', [newEvent()], 'none')
  follower.fault = 'notLeader'
  follower.leaderPort = leader.port
  t.ok((await Promise.all(atOnce(log, 50))).every(({ revision }) => revision === 0))
  const direct = await openLog(t, leader.url)
  for (let i = 0; i < 50; i++) if ((await direct.head(`a-${i}`)) !== 0) t.fail(`stream ${i}`)
})

test('an append that the user may not do is refused at once', async (t) => {
  const server = await openServer(t)
  const log = await openLog(t, server.url)
  server.fault = 'forbidden'
  await t.rejects(log.append('a-1', [newEvent()], 'none'), { code: 'engine_down', cause: { message: 'AccessDenied' } })
  t.equal(server.struck, 1)
})

test('the search for an append of unknown outcome ends with its time, and goes on where it was when it is repeated', async (t) => {
  const server = await openServer(t)
  const log = await whenUp(() => openLog(t, server.url, 1_000))
  const first = [newEvent()]
  await whenUp(() => log.append('b-1', first, 'any'))
  const events = [newEvent()]
  server.fault = 'notReady'
  await t.rejects(log.append('b-1', events, 'any'), { code: 'engine_down' })
  server.fault = undefined
  const other = await openLog(t, server.url)
  await other.append(
    'b-1',
    Array.from({ length: 1_600 }, () => newEvent()),
    'any',
  )
  // To read all that was appended meanwhile takes longer than an append may take.
  server.delayMs = 100
  let revision: number | undefined
  const append = (): Promise<boolean> =>
    log.append('b-1', events, 'any').then(
      (appended) => {
        revision = appended.revision
        return true
      },
      () => false,
    )
  await until('an append', append)
  t.equal(revision, 1_601)
})

test('the server may send more in a turn of the event loop than HTTP/2 has by default', async (t) => {
  const server = createServer()
  const sessions: ServerHttp2Session[] = []
  server.on('session', (session) => sessions.push(session))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const url = `esdb://127.0.0.1:${port}?tls=false`
  const opening = openEventstoredbLog({ url, deadlineMs: 1_000, newId: randomUUID, now: Date.now })
  const isRefused = t.rejects(opening, { code: 'engine_down' })
  await until('the window of all calls together', () => sessions[0]?.state.remoteWindowSize === 256 * 1024)
  t.equal(sessions[0].remoteSettings.initialWindowSize, 256 * 1024, 'of a call')
  await isRefused
  for (const session of sessions) session.destroy()
  server.close()
})
