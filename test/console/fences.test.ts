import { test } from 'tap'
import { skip } from '../support/browser.ts'
import { axe } from '../support/axe.ts'
import { mapOf, namesListed, openConsole, openConsoleWorld, signIn } from '../support/console.ts'
import { ask, type Json, until } from '../support/service.ts'

test('a geofence is drawn, tried against last week, changed by numbers and deleted', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, gateway } = await openConsoleWorld(t)
  const begun = Date.now() - 3_600_000
  // Through the middle of what will be drawn, from south to north.
  const points = Array.from({ length: 60 }, (_, i) => ({
    externalId: 'van',
    recordedAt: begun + i * 10_000,
    lat: 51.97 + i * 0.001,
    lng: 21,
  }))
  await gateway.send(points)
  await gateway.drained()
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'van')
  const map = await mapOf(page)
  await page.getByRole('link', { name: 'Geofences' }).click()
  await map('void map.jumpTo({ center: [21, 52], zoom: 13 })')
  t.same(await axe(page), [], 'the list')

  await page.getByRole('button', { name: '+ Polygon' }).click()
  await page.getByLabel('Name').fill('Middle')
  const box = (await page.locator('.ground .map').boundingBox())!
  const at = (dx: number, dy: number): [number, number] => [box.x + box.width / 2 + dx, box.y + box.height / 2 + dy]
  for (const corner of [at(-100, -60), at(100, -60), at(100, 60), at(-100, 60)]) {
    await page.mouse.click(...corner)
    await page.waitForTimeout(400) // Two clicks at once are a double click, which zooms.
  }
  const handles = async (): Promise<Json[]> => (await map('map.getSource("handles").getData()')).features
  await until('four corners, and a handle between each', async () => (await handles()).length === 8)
  await page.mouse.move(...at(100, 60))
  await page.mouse.down()
  await page.mouse.move(...at(140, 80), { steps: 4 })
  await page.mouse.up()
  t.equal((await handles()).length, 8, 'a corner was dragged, none was added')
  t.same(await axe(page), [], 'while it is drawn')

  await page.getByRole('button', { name: 'Try it' }).click()
  await page.getByText('1 entries and 1 leaves of 1 trackers').waitFor()
  const stored = async (): Promise<Json[]> => (await ask(service, 'GET', '/geofences', { token })).data
  t.same(await stored(), [], 'nothing of the trial stays')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').waitFor()
  const [fence] = await stored()
  t.equal(fence.name, 'Middle')
  t.equal(fence.geometry.coordinates[0].length, 5)
  t.equal(fence.isActive, true)

  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('<b>Round</b>')
  await page.getByLabel('Centre').fill('52.03, 21')
  await page.getByLabel('Centre').press('Tab')
  await page.getByLabel('Radius').fill('450')
  await page.getByText('Inside now: 1').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('list', { name: 'Geofences' }).getByText('<b>Round</b>').click()
  t.equal(await page.getByLabel('Radius').inputValue(), '450')
  await page.getByLabel('Radius').fill('500')
  await page.getByRole('button', { name: 'Save' }).click()
  await until('the change', async () => (await stored()).some(({ radius }) => radius === 500))
  await page.getByRole('list', { name: 'Geofences' }).getByText('<b>Round</b>').click()
  page.on('dialog', (dialog) => void dialog.accept())
  await page.getByRole('button', { name: 'Delete' }).click()
  await until('one to be left', async () => (await stored()).length === 1)
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
