import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { axe } from '../../support/axe.ts'
import { mapOf, NOTE_SWIPES, openAfterDrive, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

test('a geofence is drawn, tried against last week, changed by numbers and deleted', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token } = world
  // Through the middle of what will be drawn, from south to north.
  const drive = { begunAt: Date.now() - 3_600_000, lat: 51.97, stepLat: 0.001 }
  const { page, complaints, map } = await openAfterDrive(t, world, drive)
  await page.getByRole('link', { name: 'Geofences' }).click()
  await map('void map.jumpTo({ center: [21, 52], zoom: 13 })')
  await page.getByRole('heading', { name: 'Geofences' }).waitFor()

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
  await page.getByText('Entries: 1, leaves: 1, trackers: 1.').waitFor()
  const stored = async (): Promise<Json[]> => (await ask(service, 'GET', '/geofences', { token })).data
  await until('nothing of the trial to stay', async () => (await stored()).length === 0)
  // Longer than the van was inside.
  await page.getByLabel('positions').fill('30')
  await page.getByRole('button', { name: 'Try it' }).click()
  await page.getByText("Entries: 0, leaves: 0, trackers: 0. The group's settings kept 2 more away.").waitFor()
  const { data: untouched } = await ask(service, 'GET', '/geofence-groups', { token })
  t.equal(untouched[0].debounce, undefined, 'rules that are tried are not saved')
  await page.getByLabel('positions').fill('')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.').waitFor()
  await until('it to be stored', async () => (await stored()).length === 1)
  const [fence] = await stored()
  t.equal(fence.name, 'Middle')
  t.equal(fence.geometry.coordinates[0].length, 5)
  t.equal(fence.isActive, true)

  // A hole around the middle, where the van has been.
  await page.getByRole('list', { name: 'Geofences' }).getByText('Middle').click()
  await page.getByRole('button', { name: 'Add a hole' }).click()
  await until('the map to come to rest', async () => (await map('map.isMoving()')) === false)
  for (const corner of [at(-60, -30), at(60, -30), at(0, 40)]) {
    await page.mouse.click(...corner)
    await page.waitForTimeout(400)
  }
  await until('the corners of the hole', async () => (await handles()).length === 14)
  await page.getByRole('link', { name: 'Look back' }).click()
  await page.getByRole('heading', { name: 'Look back' }).waitFor()
  await page.getByRole('link', { name: 'Geofences' }).click()
  await until('what was drawn to be there again', async () => (await handles()).length === 14)
  await page.getByLabel('positions').fill('4')
  await page.getByLabel('Worst accuracy taken').fill('80')
  await page.getByRole('button', { name: 'Save for the group' }).click()
  await page
    .getByRole('group', { name: /for all of Yards/ })
    .getByText('Saved.')
    .waitFor()
  const groups = async (): Promise<Json> => (await ask(service, 'GET', '/geofence-groups', { token })).data[0]
  await until('the rules', async () => {
    const { debounce, maxAccuracy } = await groups()
    return debounce?.fixes === 4 && maxAccuracy === 80
  })
  await page.getByLabel('positions').fill('')
  await page.getByLabel('Worst accuracy taken').fill('')
  await page.getByRole('button', { name: 'Save for the group' }).click()
  await until('no rules', async () => (await groups()).debounce === undefined)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until('the hole', async () => (await stored())[0].geometry.coordinates.length === 2)

  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('<b>Round</b>')
  await page.getByLabel('Centre').fill('52.03, 21')
  await page.getByLabel('Centre').press('Tab')
  await page.getByLabel('Radius').fill('450')
  await page.getByText('Inside now: 1').waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('list', { name: 'Geofences' }).getByText('<b>Round</b>').click()
  t.equal(await page.getByLabel('Radius').inputValue(), '450')
  await page.getByLabel('Radius').fill('500')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until('the change', async () => (await stored()).some(({ radius }) => radius === 500))
  await page.getByRole('list', { name: 'Geofences' }).getByText('<b>Round</b>').click()
  page.on('dialog', (dialog) => void dialog.accept())
  await page.getByRole('button', { name: 'Delete' }).click()
  await until('one to be left', async () => (await stored()).length === 1)
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('a geofence is drawn by touch', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login } = await openConsoleWorld(t)
  const { page, complaints } = await openConsole(t, service, { width: 390, height: 844, hasTouch: true })
  await signIn(page, login)
  const map = await mapOf(page)
  await page.getByRole('link', { name: 'Geofences' }).tap()
  await map('void map.jumpTo({ center: [21, 52], zoom: 13 })')
  await page.getByRole('button', { name: '+ Polygon' }).tap()
  await page.getByLabel('Name').fill('Yard')
  const box = (await page.locator('.ground .map').boundingBox())!
  const at = (dx: number, dy: number): [number, number] => [box.x + box.width / 2 + dx, box.y + box.height / 2 + dy]
  const handles = async (): Promise<Json[]> => (await map('map.getSource("handles").getData()')).features
  const corners = [at(-80, -60), at(80, -60), at(80, 60)]
  for (const [i, corner] of corners.entries()) {
    await page.touchscreen.tap(...corner)
    await until(
      'the corner',
      async () => (await handles()).filter((one) => one.properties.kind === 'corner').length > i,
    )
    await page.waitForTimeout(400) // Two taps at once zoom.
  }
  // A finger lands beside the corner, and takes hold of it.
  const cdp = await page.context().newCDPSession(page)
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', place?: [number, number]) =>
    cdp.send('Input.dispatchTouchEvent', { type, touchPoints: place ? [{ x: place[0], y: place[1] }] : [] })
  const before = (await handles()).find(({ properties }) => properties.kind === 'corner' && properties.index === 2)
  await page.evaluate(NOTE_SWIPES)
  await touch('touchStart', at(94, 68))
  for (const place of [at(100, 70), at(110, 80), at(120, 90)]) await touch('touchMove', place)
  await touch('touchEnd')
  const corner = async (): Promise<Json> =>
    (await handles()).find(({ properties }) => properties.kind === 'corner' && properties.index === 2)
  await until('the corner to have moved', async () => {
    return (await corner()).geometry.coordinates[0] > before.geometry.coordinates[0]
  })
  t.equal((await handles()).length, 6, 'none was added')
  t.equal(await page.evaluate('globalThis.isSwipe'), false, 'it is no swipe, whose end would swallow the tap on Save')
  await page.getByRole('button', { name: 'Save', exact: true }).tap()
  await page.getByText('Saved.').waitFor()
  const stored = async (): Promise<Json> => (await ask(service, 'GET', '/geofences', { token })).data[0]
  await until('it to be stored', async () => (await stored()) !== undefined)
  const { name, geometry } = await stored()
  t.same([name, geometry.coordinates[0].length], ['Yard', 4])

  await page.getByRole('button', { name: '+ Corridor' }).tap()
  await page.getByLabel('Name').fill('Road')
  await page.getByLabel('Width').fill('60')
  const ends = async (): Promise<number> => (await handles()).filter((one) => one.properties.kind === 'corner').length
  for (const [i, end] of [at(-90, -20), at(90, 20)].entries()) {
    await page.touchscreen.tap(...end)
    await until('the end', async () => (await ends()) > i)
    await page.waitForTimeout(400)
  }
  await page.getByRole('button', { name: 'Save', exact: true }).tap()
  await page.getByRole('list', { name: 'Geofences' }).getByText('Road').waitFor()
  const roads = async (): Promise<Json[]> =>
    (await ask(service, 'GET', '/geofences', { token })).data.filter((one: Json) => one.name === 'Road')
  await until('the road to be stored', async () => (await roads()).length === 1)
  const [road] = await roads()
  t.match(road, { width: 60, geometry: { type: 'LineString' } })
  t.equal(road.geometry.coordinates.length, 2)
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
