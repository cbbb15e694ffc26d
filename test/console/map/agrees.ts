import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { isAt, mapOf, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const MINUTES = 10
const MINUTE = 60_000

/** The first minutes of the shipped trace, moved in time so that they end now. */
const traceUntil = (now: number) => {
  const rows = gunzipSync(readFileSync('demo/fleet-warsaw.csv.gz')).toString().trim().split('\n').slice(1)
  const points = rows.map((row) => {
    const [externalId, at, lat, lng] = row.split(',') as [string, string, string, string]
    return { externalId, recordedAt: Date.parse(at), lat: Number(lat), lng: Number(lng) }
  })
  const begun = points[0]!.recordedAt
  return points
    .filter(({ recordedAt }) => recordedAt < begun + MINUTES * MINUTE)
    .map((point) => ({ ...point, recordedAt: point.recordedAt - begun + now - MINUTES * MINUTE }))
}

test('each tracker stands on the screen where the service has it', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, gateway } = await openConsoleWorld(t)
  const begun = Date.now()
  const points = traceUntil(begun)
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  const map = await mapOf(page)
  const apart = async (): Promise<string[]> => {
    const { data } = await ask(service, 'GET', '/live-positions?limit=500', { token })
    const places = (await map('view.places()')) as { [trackerId: string]: [number, number] }
    const found = (data as Json[]).filter((position) => {
      return !isAt(places[position.trackerId] ?? [-1, -1], position)
    })
    const unknown = Object.keys(places).filter((id) => !(data as Json[]).some(({ trackerId }) => trackerId === id))
    return [...found.map(({ name }) => name), ...unknown]
  }
  for (let minute = 0; minute < MINUTES; minute++) {
    const from = begun - (MINUTES - minute) * MINUTE
    await gateway.send(points.filter(({ recordedAt }) => recordedAt >= from && recordedAt < from + MINUTE))
    if (minute % 3 === 0) {
      await gateway.drained()
      await until(`the screen to agree after ${minute + 1} minutes`, async () => (await apart()).length === 0)
    }
  }
  await gateway.drained()
  await until('the screen to agree at the end', async () => (await apart()).length === 0)
  const { data } = await ask(service, 'GET', '/live-positions?limit=500', { token })
  t.equal(data.length, new Set(points.map(({ externalId }) => externalId)).size)
  t.equal(Object.keys(await map('view.places()')).length, data.length)
  t.equal(await map('view.trackers.drawn'), data.length)
  t.same(complaints, [], 'nothing breaks')
})
