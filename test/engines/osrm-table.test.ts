import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { openOsrmTable } from '../../src/engines/osrm-table/osrm-table.ts'
import { UNREACHABLE } from '../../src/engines/travel-times.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/service.ts'

type Serve = (request: IncomingMessage, response: ServerResponse) => void

const places = Array.from({ length: 7 }, (_, i) => ({ lat: 52 + i / 100, lng: 21 }))

const open = async (t: Test, serve: Serve, limits: { deadlineMs?: number; clock?: Clock } = { deadlineMs: 5_000 }) => {
  const server = createServer(serve)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const osrm = openOsrmTable({ url: `http://127.0.0.1:${port}`, clock: systemClock, ...limits })
  t.teardown(async () => {
    await osrm.close()
    server.closeAllConnections()
    server.close()
  })
  return (signal = new AbortController().signal) => osrm.table(places, signal)
}

/** What a real server answers to the question: places are told apart by their latitude. */
const answerTo = ({
  url = '',
}: IncomingMessage): { distances: (number | null)[][]; durations: (number | null)[][] } => {
  const { pathname, searchParams } = new URL(url, 'http://osrm')
  const sent = pathname.split('/').at(-1)?.split(';') ?? []
  const lats = sent.map((one) => Math.round(Number(one.split(',')[1]) * 100))
  const side = (name: string) => searchParams.get(name)?.split(';').map(Number) ?? [...sent.keys()]
  const distances = side('sources').map((from) => side('destinations').map((to) => 10 * lats[from] + lats[to] - 57_200))
  return { distances, durations: distances.map((row) => row.map((one) => (one === 12 ? null : one / 10))) }
}

test('a table comes together from blocks that a server takes', async (t) => {
  let calls = 0
  const table = await open(t, (request, response) => {
    calls++
    const { pathname } = new URL(request.url ?? '', 'http://osrm')
    if (pathname.split(';').length > 12)
      return void response.writeHead(400).end(JSON.stringify({ code: 'TooBig', message: 'Too many table coordinates' }))
    response.end(JSON.stringify({ code: 'Ok', ...answerTo(request) }))
  })
  const { distances, durations } = await table()
  for (let from = 0; from < 7; from++)
    for (let to = 0; to < 7; to++) {
      const cell = 10 * from + to
      t.equal(distances[from * 7 + to], cell)
      t.ok(Math.abs(durations[from * 7 + to] - (cell === 12 ? UNREACHABLE : cell / 10)) < 1e-3)
    }
  t.ok(calls >= 1)
})

test('answers of no use, and none at all, fail with what happened', async (t) => {
  const failing: [what: RegExp, serve: Serve][] = [
    [/answered 500 with what is no JSON/, (_request, response) => void response.writeHead(500).end('<html>')],
    [/answered 200/, (_request, response) => void response.end('null')],
    [/few places are too many/, (_request, response) => void response.end('{"code":"TooBig"}')],
    [/answered 400 InvalidQuery/, (_request, response) => void response.writeHead(400).end('{"code":"InvalidQuery"}')],
    [
      /not of the size asked for/,
      (_request, response) => void response.end('{"code":"Ok","distances":[[1]],"durations":[[1]]}'),
    ],
    [/not of the size asked for/, (_request, response) => void response.end('{"code":"Ok"}')],
    [
      /answered 302/,
      (_request, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end('{}'),
    ],
    [/more than \d+ bytes/, (_request, response) => void response.end(Buffer.alloc(5 * 1024 * 1024, 32))],
    [/cannot be reached/, (request) => void request.socket.destroy()],
    [/did not answer within 100 ms/, () => undefined],
    [/did not answer within 100 ms/, (_request, response) => void response.write('{"code":')],
  ]
  for (const [what, serve] of failing) {
    const table = await open(t, serve, { deadlineMs: what.source.includes('did not') ? 100 : 5_000 })
    await t.rejects(table(), { code: 'engine_down', message: what })
  }
})

test('a server that hangs has 15 seconds, three times', async (t) => {
  const clock = new FakeClock()
  let requests = 0
  const table = await open(t, () => void requests++, { clock })
  const failed = t.rejects(table(), { code: 'engine_down', message: /did not answer within 15000 ms/ })
  for (let tries = 1; tries <= 3; tries++) {
    await until('a request', () => requests === tries)
    t.ok(clock.isAwaited(15_000))
    clock.advance(15_000)
    if (tries === 3) break
    await until('the next try', () => clock.isAwaited(500))
    clock.advance(500)
  }
  await failed
})

test('whoever waits for a table can give it up', async (t) => {
  let asked = (): void => undefined
  const isAsked = new Promise<void>((done) => (asked = done))
  const table = await open(t, () => asked())
  const end = new AbortController()
  const waiting = table(end.signal)
  await isAsked
  end.abort(new Error('given up'))
  await t.rejects(waiting, { message: 'given up' })
})
