import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { test } from 'tap'
import { type Crossing, triedOf } from '../../../src/console/fences/tried.ts'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { inHistory, liveAtNoon, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, samplesMade, until } from '../../support/service.ts'

const MINUTE = 60_000
/** How many colours the copy of the map has that is printed. */
const COLORS_ON_PAPER = `(() => {
  const { width, height } = document.querySelector('.paper')
  const { data } = document.querySelector('.paper').getContext('2d').getImageData(0, 0, width, height)
  return new Set(new Uint32Array(data.buffer)).size
})()`

test('what debounce keeps away is told beside what it lets through', async (t) => {
  const crossing = (type: Crossing['type'], at: number, trackerId = 'a'): Crossing => ({ trackerId, type, at })
  const raw = [
    crossing('entry', 1),
    crossing('leave', 2),
    crossing('entry', 3),
    crossing('leave', 9),
    crossing('entry', 5, 'b'),
  ]
  const tried = triedOf([crossing('entry', 4), crossing('leave', 9)], raw, { from: 0, to: 10 })
  t.same(tried.rows, [
    { trackerId: 'a', visits: [{ from: 4, to: 9 }], removed: [1, 2] },
    { trackerId: 'b', visits: [], removed: [5] },
  ])
  t.same([tried.entries, tried.leaves, tried.trackers, tried.removed], [1, 1, 1, 3])
  t.same(triedOf([crossing('entry', 4)], [crossing('entry', 4)], { from: 0, to: 10 }).rows[0]?.visits, [
    { from: 4, to: 10 },
  ])
})

test('a dispatcher asks for tags, tasks, visits and files', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway, hubId } = world
  await liveAtNoon(world)
  await samplesMade(service, token)
  const { data: me } = await ask(service, 'GET', '/user', { token })
  const { data: vehicle } = await ask(service, 'POST', '/vehicle', {
    token,
    body: { name: 'Van 12', type: 'car', hubId },
  })
  const body = { name: 'Van', externalId: 'van', tags: ['cooled'], userId: me._id, vehicleId: vehicle._id }
  await ask(service, 'POST', '/tracker', { token, body })
  const { data: flows } = await ask(service, 'GET', '/flows?key=delivery', { token })
  const task = { flowId: flows[0]._id, title: 'Deliver <b>3</b> parcels', hubId, assigneeIds: [me._id] }
  const { data: made } = await ask(service, 'POST', '/task', { token, body: task })
  await ask(service, 'POST', `/task/${made._id}/start`, { token })
  const begun = Date.now() - 30 * MINUTE
  // North through what will be the yard, and on.
  const points = Array.from({ length: 40 }, (_, i) => ({
    ...{ externalId: 'van', recordedAt: begun + i * 30_000, lat: 52 + i * 0.002, lng: 21, battery: 0.87 },
  }))
  await gateway.send([...points, { externalId: 'car', recordedAt: Date.now(), lat: 52.3, lng: 21 }])
  await gateway.drained()
  await inHistory(world, points.length + 1)
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await until('the trackers', async () => (await namesListed(page)).join() === 'car,Van')
  await page.getByLabel('Tag').selectOption('cooled')
  await until('those with the tag', async () => (await namesListed(page)).join() === 'Van')
  await page.getByRole('button', { name: 'Show all' }).click()

  await page.getByRole('list', { name: 'Trackers' }).getByText('Van', { exact: true }).click()
  const drawer = page.getByRole('region', { name: 'Van' })
  for (const words of ['Deliver <b>3</b> parcels', 'Van 12', '87 %', me.name]) await drawer.getByText(words).waitFor()
  await drawer.getByText('Last points').click()
  await until('the last points', async () => (await drawer.locator('tbody tr').count()) === 10)
  t.same(await axe(page), [], 'the drawer')

  await page.getByRole('link', { name: 'Geofences' }).click()
  const yard = { type: 'Feature', properties: { name: 'Yard' }, geometry: squareAt(52.03, 21) }
  await drop(page, JSON.stringify({ type: 'FeatureCollection', features: [yard] }))
  await page.getByText('1 imported, 0 rejected.').waitFor()
  await page.getByRole('list', { name: 'Geofences' }).getByRole('button').first().click()
  const visits = page.getByRole('list', { name: 'Visits' })
  await visits.getByText('Nobody was inside in this time.').waitFor()
  await page.getByRole('button', { name: 'Try it' }).click()
  await page.getByText('Entries: 1, leaves: 1, trackers: 1.').waitFor()
  await page.getByRole('img', { name: 'Van in ' }).waitFor()
  t.same(await axe(page), [], 'a geofence that was tried')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('list', { name: 'Geofences' }).getByRole('button').first().click()
  await visits.getByText('Nobody was inside in this time.').waitFor()
  // What enters from now on is a visit, and the open page hears of it; the history has it only later.
  const none = { data: [], nextCursor: null }
  await page.route('**/reports/visits?*', (route) => route.fulfill({ json: none }), { times: 1 })
  await gateway.send([
    { externalId: 'van', recordedAt: Date.now() - 2_000, lat: 52.2, lng: 21 },
    { externalId: 'van', recordedAt: Date.now(), lat: 52.03, lng: 21 },
  ])
  await gateway.drained()
  await visits.getByText('still inside').waitFor()
  await visits.getByRole('link', { name: 'Van' }).waitFor()
  t.match(await downloaded(page, 'CSV'), /^trackerId,.*\r\n.+/)
  await inHistory(world, points.length + 3)

  await page.getByRole('link', { name: 'Map', exact: true }).click()
  await page.getByRole('list', { name: 'Trackers' }).getByText('Van', { exact: true }).click()
  await page.getByRole('button', { name: 'Look back' }).click()
  await page.getByRole('list', { name: 'Trips and stops' }).waitFor()
  const gpx = await downloaded(page, 'GPX')
  t.match(gpx, /<gpx/)
  t.equal(gpx.match(/<trkpt/g)?.length, points.length + 2)
  await page.emulateMedia({ media: 'print' })
  // Printed are the map and the day, without buttons.
  await page.getByRole('navigation').waitFor({ state: 'hidden' })
  await page.locator('.paper').waitFor()
  await page.getByRole('article', { name: 'Van' }).waitFor()
  await page.pdf()
  t.ok(Number(await page.evaluate(COLORS_ON_PAPER)) > 10, 'the map is drawn on what is printed')
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

const squareAt = (lat: number, lng: number) => ({
  type: 'Polygon',
  coordinates: [
    [
      [lng - 0.01, lat - 0.005],
      [lng + 0.01, lat - 0.005],
      [lng + 0.01, lat + 0.005],
      [lng - 0.01, lat + 0.005],
      [lng - 0.01, lat - 0.005],
    ],
  ],
})

/** Drops a file on the list of geofences. */
const drop = async (page: Page, text: string): Promise<void> => {
  const dataTransfer = await page.evaluateHandle(
    `(() => { const data = new DataTransfer(); data.items.add(new File([${JSON.stringify(text)}], 'yards.geojson')); return data })()`,
  )
  await page.getByRole('region', { name: 'Geofences' }).dispatchEvent('drop', { dataTransfer })
}

const downloaded = async (page: Page, button: string): Promise<string> => {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ])
  return readFileSync(await file.path(), 'utf8')
}
