import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

test("what is typed into a geofence's form is taken, or stays and is said to be wrong", {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login } = await openConsoleWorld(t)
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  const stored = async (path: string): Promise<Json[]> => (await ask(service, 'GET', path, { token })).data
  const save = () => page.getByRole('button', { name: 'Save', exact: true }).click()
  /** Whether the browser asks before it reloads the page. */
  const isAsked = (): Promise<boolean> =>
    page.evaluate("!dispatchEvent(new Event('beforeunload', { cancelable: true }))")
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('button', { name: '+ Circle' }).click()
  t.notOk(await isAsked(), 'nothing is typed yet')
  await page.getByLabel('Name').fill('Yard')
  t.ok(await isAsked(), 'a reload would lose it')
  const center = page.getByLabel('Centre')
  await center.fill('52.03, 21')
  await center.press('Tab')
  // With decimal commas it is four numbers, the first two of which are another place.
  await center.fill('52,23, 21,01')
  await save()
  await page.getByRole('alert').filter({ hasText: 'Give latitude and longitude' }).waitFor()
  t.equal(await center.inputValue(), '52,23, 21,01')
  t.same(await stored('/geofences'), [], 'nothing is saved in its place')
  await center.fill('52.23, 21.01')
  const fixes = page.getByLabel('positions')
  await fixes.fill('4')
  await save()
  const rules = page.getByRole('group', { name: /for all of Yards/ })
  await page.getByText('The rules typed for Yards are not saved yet.').waitFor()
  t.ok(await isAsked(), 'a reload would lose the rules')
  t.match((await stored('/geofences'))[0], { name: 'Yard', center: { lat: 52.23, lng: 21.01 } })
  t.equal(await fixes.inputValue(), '4', 'they are still there')
  await rules.getByRole('button', { name: 'Save for the group' }).click()
  await rules.getByText('Saved.').waitFor()
  t.equal((await stored('/geofence-groups'))[0].debounce.fixes, 4)
  t.notOk(await isAsked(), 'all is saved')

  await page.getByRole('button', { name: '+ Corridor' }).click()
  await page.getByLabel('Name').fill('Road')
  await page.getByText('Corners', { exact: true }).click()
  const corners = page.getByRole('textbox', { name: 'Corners' })
  await corners.fill('52, 21\n52.1, 21')
  await corners.press('Tab')
  await corners.fill('52, 21\n52.1, 21\n53 N')
  await page.getByText('Corners', { exact: true }).click()
  await save()
  await page.getByRole('alert').filter({ hasText: 'no latitude and longitude: 53 N' }).waitFor()
  t.equal(await corners.inputValue(), '52, 21\n52.1, 21\n53 N', 'the field is open, as it was typed')
  t.equal((await stored('/geofences')).length, 1, 'nothing is saved in its place')
  await corners.fill('52, 21\n52.1, 21\n53, 21')
  await fixes.fill('5')
  await page.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByRole('button', { name: '+ Corridor' }).click()
  t.equal(await fixes.inputValue(), '4', 'what was cancelled is gone')
  await until('a form without a name', async () => (await page.getByLabel('Name').inputValue()) === '')
  t.same(complaints, [], 'no error in the console')
})
