import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { near, openRoutingWorld } from '../../support/routing-world.ts'

test('roads come from an OSRM server, block by block; one that fails or hangs fails the planning', async (t) => {
  let answers: 'well' | 'island' | 'errors' | 'never' = 'well'
  let largest = 0
  const osrm = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://osrm')
    const [, places] = /^\/osrm\/table\/v1\/driving\/(.+)$/.exec(url.pathname) ?? []
    const count = places.split(';').length
    largest = Math.max(largest, count)
    if (answers === 'errors') return void response.writeHead(500).end('no')
    if (answers === 'never') return
    table(response, url, count)
  })
  const table = (response: ServerResponse, url: URL, count: number): void => {
    if (count > 20) return void response.writeHead(400).end(JSON.stringify({ code: 'TooBig', message: 'Too many' }))
    const indexes = (name: string) => url.searchParams.get(name)?.split(';').map(Number) ?? [...Array(count).keys()]
    const rows = indexes('sources').map((from) => indexes('destinations').map((to) => (from === to ? 0 : 1_000)))
    const timeOf = (one: number): number | null => (answers === 'island' && one > 0 ? null : one / 10)
    response.end(JSON.stringify({ code: 'Ok', distances: rows, durations: rows.map((row) => row.map(timeOf)) }))
  }
  await new Promise<void>((done) => osrm.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    osrm.closeAllConnections()
    osrm.close()
  })
  const { port } = osrm.address() as AddressInfo
  const { hubId, send, make, tasks, planned } = await openRoutingWorld(t, ['--osrm', `http://127.0.0.1:${port}/osrm`])
  const vehicle = await make('/vehicle', { name: 'Van', hubId, speed: 1 })
  const taskIds = await tasks(Array.from({ length: 30 }, near))
  const question = { hubId, taskIds, vehicleIds: [vehicle._id], startAt: Date.now(), steps: 50 }
  const result = await planned((await send('POST', '/routing', question)).json.data._id)
  t.equal(result.state, 'planned', JSON.stringify(result))
  t.ok(largest > 20)
  t.equal(result.routes[0].distanceMeters, 31_000)
  t.equal(result.routes[0].durationSeconds, 3_100, 'driving times do not follow from the speed')
  await send('DELETE', `/routing-result/${result._id}`)
  answers = 'island'
  const apart = await planned((await send('POST', '/routing', question)).json.data._id)
  t.same(apart.routes, [])
  t.match(apart.unassigned[0], { reason: 'noRoad' })
  await send('DELETE', `/routing-result/${apart._id}`)
  answers = 'errors'
  const failed = await planned((await send('POST', '/routing', question)).json.data._id)
  t.equal(failed.state, 'failed')
  t.match(failed.error.message, /OSRM server answered 500/)
  answers = 'never'
  const givenUp = await planned((await send('POST', '/routing', question)).json.data._id)
  t.equal(givenUp.state, 'failed')
  t.match(givenUp.error.message, /OSRM server did not answer within 15000 ms/)
})
