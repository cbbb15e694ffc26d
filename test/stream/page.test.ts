import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { ask, signUp, startService, until } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

const CHROMIUM = '/usr/bin/chromium'
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
]
const TRACKERS = 5
const LIMIT_MS = 60_000

test('the page shows the fleet live', {
  skip: existsSync(CHROMIUM) ? false : `needs ${CHROMIUM}`,
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, email, password } = await signUp(service)
  const group = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })).data._id
  await ask(service, 'POST', '/geofence', {
    token,
    body: { name: 'North yard', geofenceGroupId: group, center: { lat: 52.05, lng: 21 }, radius: 800 },
  })
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })).data
    .key
  const gateway = await IngestClient.connect(service.url, key)
  t.teardown(() => gateway.close())
  const begun = Date.now() - 300_000
  let step = 0
  const move = async (): Promise<void> => {
    step++
    const points = Array.from({ length: TRACKERS }, (_, i) => ({
      externalId: `bus-${i}`,
      recordedAt: begun + step * 1_000,
      lat: 52 + i * 0.002 + step * 0.004,
      lng: 20.99 + i * 0.005,
    }))
    await gateway.send(points)
    await gateway.drained()
  }
  await move()

  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, timeout: LIMIT_MS })
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1100, height: 700 } })
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !/WebGL|GPU|swiftshader/i.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(service.url, { timeout: LIMIT_MS })
  await page.fill('input[name=email]', email)
  await page.fill('input[name=password]', password)
  await page.click('button')
  const number = async (id: string): Promise<number> => Number(await page.textContent(`#${id}`))
  await until('the trackers to appear', async () => (await number('count')) === TRACKERS, LIMIT_MS)
  const map = await page.locator('#map canvas').first().boundingBox()
  t.ok(map !== null && map.width > 300 && map.height > 300, 'the map has room')
  // The fleet stands in a line and fills the view: its middle one is in the middle.
  await until(
    'a click to draw the trail',
    async () => {
      await page.mouse.click((map?.x ?? 0) + (map?.width ?? 0) / 2, (map?.y ?? 0) + (map?.height ?? 0) / 2)
      const isDrawn = async (): Promise<boolean> => /bus-2: \d+ points?/.test((await page.textContent('#trail')) ?? '')
      // Not again at once: two clicks would zoom in.
      return until('the trail', isDrawn, 4_000).then(
        () => true,
        () => false,
      )
    },
    LIMIT_MS,
  )
  const moves = await number('moves')
  while (step < 12) await move()
  await until('moves to rise', async () => (await number('moves')) > moves, LIMIT_MS)
  await until(
    'a crossing',
    async () => /bus-\d entered North yard/.test((await page.textContent('#crossings')) ?? ''),
    LIMIT_MS,
  )

  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
