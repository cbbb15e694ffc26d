import { chromium, type Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { CHROMIUM, FLAGS, skip } from '../support/browser.ts'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, signUp, startService, until, type Service } from '../support/service.ts'

const SOFTWARE_WEBGL = ['--use-angle=swiftshader', '--enable-unsafe-swiftshader']
const NO_WEBGL = ['--disable-3d-apis']
const TRACKERS = 5
const LIMIT_MS = 240_000
const MAP = 'globalThis.testMap'

interface World {
  service: Service
  token: string
  login: { email: string; password: string }
  gateway: IngestClient
}

const openWorld = async (t: Test): Promise<World> => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, email, password } = await signUp(service)
  const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })).data._id
  const fence = (body: Json) => ask(service, 'POST', '/geofence', { token, body: { geofenceGroupId: group, ...body } })
  await fence({ name: 'North yard', center: { lat: 52.05, lng: 21 }, radius: 800 })
  await fence({ name: 'Bent road', width: 200, geometry: { type: 'LineString', coordinates: BEND } })
  const key = await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })
  const gateway = await IngestClient.connect(service.url, key.data.key)
  t.teardown(() => gateway.close())
  return { service, token, login: { email, password }, gateway }
}

/** A corridor with a corner: an area between its arms is not in it. */
const BEND = [
  [20.96, 52.01],
  [20.96, 52.03],
  [20.985, 52.03],
]
const IN_THE_CORNER = [20.968, 52.0235]

const openPage = async (t: Test, { service, login }: World, flags: readonly string[]): Promise<[Page, string[]]> => {
  const args = [...FLAGS, ...flags]
  const browser = await chromium.launch({ executablePath: CHROMIUM, args, timeout: LIMIT_MS })
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1200, height: 700 } })
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !/GPU|GL Driver|swiftshader/i.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.addInitScript(KEEP_MAP)
  await page.goto(service.url, { timeout: LIMIT_MS })
  await page.fill('input[name=email]', login.email)
  await page.fill('input[name=password]', login.password)
  await page.click('#login button')
  return [page, complaints]
}

/** Keeps the map where a test can ask it what it draws. */
const KEEP_MAP = `
  let library, isHooked
  Object.defineProperty(globalThis, 'maplibregl', {
    set: (value) => { library = value },
    get: () => {
      if (!isHooked && library?.Map) {
        isHooked = true
        const { addControl } = library.Map.prototype
        library.Map.prototype.addControl = function (...args) {
          ${MAP} = this
          return addControl.apply(this, args)
        }
      }
      return library
    },
  })`

const textOf = async (page: Page, id: string): Promise<string> => (await page.textContent(`#${id}`)) ?? ''

test('the page shows the fleet live', { skip, timeout: 900_000 }, async (t) => {
  const world = await openWorld(t)
  const begun = Date.now() - 300_000
  let step = 0
  const move = async (): Promise<void> => {
    step++
    const points = Array.from({ length: TRACKERS }, (_, i) => ({
      externalId: `bus-${i}`,
      recordedAt: begun + step * 10_000,
      lat: 52 + i * 0.002 + step * 0.004,
      lng: 20.99 + i * 0.005,
    }))
    await world.gateway.send(points)
    await world.gateway.drained()
  }
  await move()
  const [page, complaints] = await openPage(t, world, SOFTWARE_WEBGL)
  const number = async (id: string): Promise<number> => Number(await textOf(page, id))
  await until('the trackers to appear', async () => (await number('count')) === TRACKERS)
  await until('the map to be drawn', () => page.evaluate(`${MAP}?.loaded() ?? false`) as Promise<boolean>)
  const layersAt = (place: number[]): Promise<string[]> =>
    page.evaluate(
      `${MAP}.queryRenderedFeatures(${MAP}.project(${JSON.stringify(place)})).map(({ layer }) => layer.id)`,
    ) as Promise<string[]>
  await page.evaluate(`${MAP}.jumpTo({ center: [20.97, 52.02], zoom: 13 })`)
  await until('the corridor to be drawn', async () => (await layersAt(BEND[1])).includes('corridors'))
  t.same(await layersAt(IN_THE_CORNER), [], 'what lies between the arms of a corridor is not filled')
  t.ok((await layersAt([20.9605, 52.02])).includes('corridors'), 'it is as wide as it says: 34 m from the axis')
  t.notOk((await layersAt([20.9625, 52.02])).includes('corridors'), 'and no wider: 171 m from the axis')

  await page.evaluate(`${MAP}.jumpTo({ center: [21, 52.008], zoom: 14 })`)
  const middle = (await page.locator('#map canvas').boundingBox()) as {
    x: number
    y: number
    width: number
    height: number
  }
  await until('a click on the map to select a tracker', async () => {
    await page.mouse.click(middle.x + middle.width / 2, middle.y + middle.height / 2)
    return (await textOf(page, 'selected-name')) === 'bus-2'
  })
  const moves = await number('moves')
  while (step < 12) await move()
  await until('moves to rise', async () => (await number('moves')) > moves)
  const isCrossed = async (): Promise<boolean> => /bus-\d entered North yard/.test(await textOf(page, 'crossings'))
  await until('a crossing', isCrossed)
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('a trail counts every point, and no line is drawn where the tracker jumped', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openWorld(t)
  const begun = Date.now() - 600_000
  // Twenty points on a straight line, which simplify to two; then the same on another street, from its beginning.
  const points = Array.from({ length: 40 }, (_, i) => ({
    externalId: 'bus',
    recordedAt: begun + i * 10_000,
    lat: 52 + (i % 20) * 0.0025,
    lng: i < 20 ? 21 : 21.05,
  }))
  await world.gateway.send(points)
  await world.gateway.drained()
  const [page] = await openPage(t, world, SOFTWARE_WEBGL)
  await page.click('#trackers li', { timeout: LIMIT_MS })
  await until('the trail', async () => (await textOf(page, 'trail')).startsWith('40 points'))
  t.match(await textOf(page, 'trail'), /^40 points in the last hour, 10\.6 km$/, 'the jump is no distance')
  const trail = (await page.evaluate(`${MAP}.getSource('trail').getData()`)) as Json
  const lines = trail.features[0].geometry.coordinates
  t.same(
    lines.map(({ length }: Json) => length),
    [20, 20],
    'two lines',
  )
  const streets = async (): Promise<Json[]> =>
    ((await page.evaluate(`${MAP}.getSource('paths').getData()`)) as Json).features
  await until('the paths', async () => (await streets()).length > 0)
  t.equal((await streets()).length, 2, 'nor is it a street')
})

test('a browser without WebGL is told so, and lists positions', { skip, timeout: 900_000 }, async (t) => {
  const world = await openWorld(t)
  const send = (lat: number) =>
    world.gateway
      .send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
      .then(() => world.gateway.drained())
  await send(52.25)
  const [page, complaints] = await openPage(t, world, NO_WEBGL)
  await until('the position', async () => (await textOf(page, 'positions')).includes('52.25000'))
  t.match(await textOf(page, 'no-map'), 'This browser offers no WebGL')
  t.notOk(await page.isVisible('#map'))
  t.match(await textOf(page, 'state'), 'live')
  await send(52.26)
  await until('the next one', async () => (await textOf(page, 'positions')).includes('52.26000'))
  await world.gateway.send([{ externalId: 'Łódź 7', recordedAt: Date.now(), lat: 51.77, lng: 19.46 }])
  await until('both trackers', async () => (await textOf(page, 'count')) === '2')
  const listed = async (): Promise<string> =>
    (await page.locator('#trackers li span:first-child').allTextContents()).join()
  for (const [typed, found] of [
    ['lodz', 'Łódź 7'],
    ['US', 'bus'],
    ['ŁÓD', 'Łódź 7'],
    ['', 'bus,Łódź 7'],
  ]) {
    await page.fill('#filter', typed)
    await until(`"${typed}" to find ${found}`, async () => (await listed()) === found)
  }
  await page.click('#trackers li')
  await until('the trail in words', async () => (await textOf(page, 'trail')).startsWith('2 points'))
  t.same(complaints, [], 'nothing breaks')
})
