import { test } from 'tap'
import { DEFAULT_LIMITS } from '../../src/ingress/options.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openDoor, rawClient, simpleRoute, waitFor } from './support.ts'

const CHUNK = Buffer.alloc(64 * 1024, 'a')

test('a stream arrives whole, in order, and slowly read ones never pile up', async (t) => {
  let yielded = 0
  const stream = async function* () {
    for (; yielded < 2000; yielded++) yield CHUNK
    yield 'end'
  }
  const door = await openDoor(t, {
    routes: [simpleRoute({}, async () => ({ stream: stream(), headers: { 'Content-Type': 'text/csv' } }))],
  })
  const client = await rawClient(t, door)
  let received = 0
  client.socket.removeAllListeners('data')
  client.socket.on('data', (data) => {
    received += data.length
  })
  client.socket.pause()
  client.send('GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n\r\n')
  const before = process.memoryUsage().rss
  await waitFor(() => yielded > 10, 'it begins')
  // What the two kernels hold is not the door's: it stops once they are full.
  let last = -1
  while (last !== yielded) {
    last = yielded
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  t.ok(yielded < 400, `${yielded} of 2000 chunks were taken while nobody read`)
  let mostAhead = 0
  const kernels = yielded * CHUNK.length
  const step = setInterval(() => {
    mostAhead = Math.max(mostAhead, yielded * CHUNK.length - received)
    if (client.socket.isPaused()) client.socket.resume()
    else client.socket.pause()
  }, 2)
  await waitFor(() => yielded === 2000, 'a slow reader gets there')
  clearInterval(step)
  client.socket.resume()
  await waitFor(() => received > 2000 * CHUNK.length, 'all of it')
  t.ok(mostAhead < kernels * 2 + 1024 * 1024, `never more than ${Math.round(mostAhead / 1024)} KiB ahead of the client`)
  t.ok(process.memoryUsage().rss - before < 150 * 1024 * 1024, 'memory stays')
})

test('a stream is a chunked answer with its headers', async (t) => {
  const routes = [
    simpleRoute({}, async () => ({
      stream: (async function* () {
        yield 'a,b\n'
        yield new Uint8Array()
        yield 'x'.repeat(200_000)
      })(),
      headers: { 'Content-Type': 'text/csv', 'Content-Disposition': 'attachment' },
    })),
  ]
  const door = await openDoor(t, { routes })
  const answer = await fetch(`${door.url}/api/v3/thing`)
  t.equal(answer.headers.get('content-type'), 'text/csv')
  t.equal(answer.headers.get('content-disposition'), 'attachment')
  t.equal((await answer.text()).length, 200_004)
  const head = await fetch(`${door.url}/api/v3/thing`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(head.headers.get('content-length'), null, 'nobody knows the length of a stream')
})

test('a client that goes away ends the stream and aborts the signal', async (t) => {
  let ended = false
  let aborted = false
  const routes = [
    simpleRoute({}, async ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      return {
        stream: (async function* () {
          try {
            for (;;) yield CHUNK
          } finally {
            ended = true
          }
        })(),
      }
    }),
  ]
  const door = await openDoor(t, { routes })
  const client = await rawClient(t, door)
  client.send('GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(/aaa/)
  client.socket.destroy()
  await waitFor(() => ended && aborted, 'the handler hears of it')
  t.same(door.lines, [])
})

test('a client that goes away while its handler works', async (t) => {
  let aborted = false
  const routes = [
    simpleRoute({}, ({ signal }) => {
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true
          resolve({ body: { late: true } })
        })
      })
    }),
  ]
  const door = await openDoor(t, { routes })
  const client = await rawClient(t, door)
  client.send('GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n\r\n')
  await new Promise((resolve) => setTimeout(resolve, 30))
  client.socket.destroy()
  await waitFor(() => aborted, 'aborted')
  t.equal((await fetch(`${door.url}/api/v3/none`)).status, 404, 'the door goes on')
})

test("work that ends because its client went away is nobody's failure", async (t) => {
  for (const isStreaming of [false, true]) {
    let begun = false
    let aborted = false
    const untilAborted = (signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) => {
        begun = true
        signal.addEventListener('abort', () => {
          aborted = true
          reject(signal.reason)
        })
      })
    const routes = [
      simpleRoute({}, async ({ signal }) => {
        if (!isStreaming) return untilAborted(signal)
        return {
          stream: (async function* () {
            yield CHUNK
            yield await untilAborted(signal)
          })(),
        }
      }),
    ]
    const door = await openDoor(t, { routes })
    const client = await rawClient(t, door)
    client.send('GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n\r\n')
    await waitFor(() => begun, 'it works')
    client.socket.destroy()
    await waitFor(() => aborted, 'aborted')
    t.equal((await fetch(`${door.url}/api/v3/none`)).status, 404, 'the door goes on')
    t.same(door.lines, [], 'nothing is recorded as an error')
  }
})

test('a stream that fails cuts the connection, so that a part is not taken for the whole', async (t) => {
  const routes = [
    simpleRoute({}, async () => ({
      stream: (async function* () {
        yield 'half'
        throw new Error('the engine is gone')
      })(),
    })),
  ]
  const door = await openDoor(t, { routes })
  const client = await rawClient(t, door)
  client.send('GET /api/v3/thing HTTP/1.1\r\nHost: x\r\n\r\n')
  t.notMatch(await client.closed, /\r\n0\r\n\r\n$/, 'no last chunk')
  t.match(door.lines, [{ level: 'error', msg: 'an answer broke off' }])
})

test('a stream that fails before its first piece is a failure, and no empty whole', async (t) => {
  const failing = async function* (pieces: string[]): AsyncGenerator<string> {
    yield* pieces
    throw new Error('the engine is gone')
  }
  const door = await openDoor(t, { routes: [simpleRoute({}, async () => ({ stream: failing([]) }))] })
  t.match(await door.call('GET', '/thing'), { status: 500, body: { code: 'internal' } })
})

test('closing waits for requests under way and refuses new ones', async (t) => {
  let finish = (): void => undefined
  let isRunning = false
  const routes = [
    simpleRoute({}, () => {
      isRunning = true
      return new Promise((resolve) => {
        finish = () => resolve({ body: { data: 'done' } })
      })
    }),
  ]
  const door = await openDoor(t, { routes })
  const running = fetch(`${door.url}/api/v3/thing`)
  await waitFor(() => isRunning, 'under way')
  const closed = door.ingress.close()
  await t.rejects(fetch(`${door.url}/api/v3/none`))
  finish()
  const answer = await running
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('connection'), 'close')
  await closed
})

test('closing ends only after a request whose connection it has cut', async (t) => {
  const clock = new FakeClock()
  let finish = (): void => undefined
  let isRunning = false
  const routes = [
    simpleRoute({}, () => {
      isRunning = true
      return new Promise((resolve) => {
        finish = () => resolve({ body: { data: 'done' } })
      })
    }),
  ]
  const door = await openDoor(t, { routes, clock })
  const running = fetch(`${door.url}/api/v3/thing`)
  await waitFor(() => isRunning, 'under way')
  let isClosed = false
  const closed = door.ingress.close().then(() => (isClosed = true))
  clock.advance(DEFAULT_LIMITS.closeTimeoutMs)
  await t.rejects(running, 'it waited so long for its answer')
  t.notOk(isClosed, 'what the handler writes still has its engines')
  finish()
  await closed
})
