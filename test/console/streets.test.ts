import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { skip } from '../support/browser.ts'
import { mapOf, openAfterDrive, openConsole, openConsoleWorld, openService, signIn } from '../support/console.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'
import { roadTile, streetArchive } from '../support/street-archive.ts'

/** The middle of a tile. */
const CENTER = [19.69, 50.74]
const TILE = { z: 6, x: 35, y: 21 }
const ON_MAP = `void map.jumpTo({ center: ${JSON.stringify(CENTER)}, zoom: 7 })`

const drawn = (layer: string): string => `map.queryRenderedFeatures({ layers: ['${layer}'] }).length`

test('streets of an archive are drawn, and nothing is asked of anybody else', { skip, timeout: 900_000 }, async (t) => {
  const archive = `${folderOf(t)}/streets.pmtiles`
  writeFileSync(archive, streetArchive(TILE, '<img src=x onerror=alert(1)>&lt;img src=y&gt;<b>Roads of ours</b>'))
  const { service, login } = await openConsoleWorld(t, await openService(t, ['--map', archive]))
  const { page, complaints } = await openConsole(t, service)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await signIn(page, login)
  const map = await mapOf(page)
  await map(ON_MAP)
  await until('the road', async () => (await map(drawn('streets-roads'))) > 0)
  await until('the shipped map below it', async () => (await map(drawn('land'))) > 0)
  await page.getByText('Roads of ours').waitFor()
  t.equal(await page.locator('img').count(), 0, 'the attribution of an archive is text')
  t.same(
    asked.filter((url) => !/^(blob|data):/.test(url) && !url.startsWith(service.url)),
    [],
  )
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('a style is loaded from the origins that are named, and from no other', { skip, timeout: 900_000 }, async (t) => {
  const [tiles, stranger] = [await mapServer(t), await mapServer(t)]
  const styles = await mapServer(t, {
    version: 8,
    sources: {
      own: { type: 'vector', tiles: ['/tiles/{z}/{x}/{y}'], minzoom: 6, maxzoom: 6, attribution: 'Roads of theirs' },
      named: { type: 'vector', tiles: [`${tiles.url}/tiles/{z}/{x}/{y}`], minzoom: 6, maxzoom: 6 },
      stranger: { type: 'vector', tiles: [`${stranger.url}/tiles/{z}/{x}/{y}`], minzoom: 6, maxzoom: 6 },
    },
    layers: [
      { id: 'ground', type: 'background', paint: { 'background-color': '#fff8e0' } },
      ...['own', 'named', 'stranger'].map((source) => ({ id: source, source, 'source-layer': 'roads', type: 'line' })),
    ],
  })
  const flags = ['--map-style', `${styles.url}/style.json`, '--map-origins', tiles.url]
  const { service, login } = await openConsoleWorld(t, await openService(t, flags))
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  const map = await mapOf(page)
  await map(ON_MAP)
  for (const source of ['own', 'named'])
    await until(`the road of ${source}`, async () => (await map(drawn(`style-${source}`))) > 0)
  await page.getByText('Roads of theirs').waitFor()
  await until('all to have been tried', () => map('map.isSourceLoaded("style-stranger")'))
  t.same(complaints, [], 'nothing else is refused')
  const fetched = (url: string) => page.evaluate(`fetch('${url}/tiles/0/0/0').then(() => true, () => false)`)
  t.same([await fetched(tiles.url), await fetched(styles.url), await fetched(stranger.url)], [true, true, false])
  t.same(stranger.asked, [], 'the stranger was never asked')
  t.ok(styles.asked.length > 1 && tiles.asked.length > 0)
  t.same(
    [...styles.headers, ...tiles.headers].filter(
      ({ authorization, cookie, referer }) => authorization ?? cookie ?? referer,
    ),
    [],
    'no token, cookie or address of the page leaves the service',
  )
  await page.emulateMedia({ colorScheme: 'dark' })
  await until('the dark page', async () => (await page.getAttribute('html', 'data-theme')) === 'dark')
  t.equal(await map('map.getPaintProperty("style-ground", "background-color")'), '#fff8e0', 'a style keeps its colours')
})

test('a style that cannot be had leaves the shipped map', { skip, timeout: 900_000 }, async (t) => {
  const styles = await mapServer(t)
  const own = await openService(t, ['--map-style', `${styles.url}/style.json`])
  const { service, login } = await openConsoleWorld(t, own)
  const { page } = await openConsole(t, service)
  await signIn(page, login)
  const map = await mapOf(page)
  await until('the land', async () => (await map(drawn('land'))) > 0)
  t.ok(styles.asked.includes('/style.json'))
})

test('where the fleet has driven is drawn', { skip, timeout: 900_000 }, async (t) => {
  const drive = { begunAt: Date.now() - 20 * 60_000, lat: 52.2, stepLat: 0.0008 }
  const { complaints, map } = await openAfterDrive(t, await openConsoleWorld(t), drive)
  let turn = 0
  await until('the traces', async () => {
    // Tiles that came before the rollup are asked for anew.
    await map(`void (map.refreshTiles('traces'), map.jumpTo({ center: [21, 52.22], zoom: ${13 + (turn++ % 2)} }))`)
    return (await map(drawn('traces'))) > 0
  })
  const along = await map(
    "map.queryRenderedFeatures({ layers: ['traces'] }).flatMap(({ geometry }) => geometry.type === 'Point' ? [geometry.coordinates] : geometry.coordinates).every(([lng]) => Math.abs(lng - 21) < 0.002)",
  )
  t.ok(along, 'along the road, and nowhere else')
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

/** A server of map tiles, and of a style where one is given; it notes what it is asked. */
const mapServer = async (t: Test, style?: object) => {
  const asked: string[] = []
  const headers: { [name: string]: unknown }[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    headers.push(request.headers)
    response.setHeader('access-control-allow-origin', '*')
    if (request.url === '/style.json' && style !== undefined) return response.end(JSON.stringify(style))
    if (request.url?.startsWith('/tiles/') === true) return response.end(roadTile())
    response.statusCode = 404
    response.end()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, headers }
}
