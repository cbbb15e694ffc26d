import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, until } from '../../support/service.ts'

const FENCES = 450
const TRIANGLE = [
  [31, 52],
  [31.1, 52],
  [31, 52.1],
  [31, 52],
]

test('the focus goes to what a key opens, and back', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, gateway, groupId } = await openConsoleWorld(t)
  await gateway.send(['bus', 'van'].map((externalId) => ({ externalId, recordedAt: Date.now(), lat: 52, lng: 21 })))
  await gateway.drained()
  const features = Array.from({ length: FENCES }, (_, i) => ({
    ...{ type: 'Feature', properties: { name: `Yard ${i}` } },
    geometry: { type: 'Polygon', coordinates: [TRIANGLE] },
  }))
  const body = { type: 'FeatureCollection', features }
  await ask(service, 'POST', `/geofences/import?geofenceGroupId=${groupId}`, { token, body })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await until('the trackers', async () => (await namesListed(page)).join() === 'bus,van')
  const isFocused = (selector: string): Promise<boolean> =>
    page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)
  const press = (key: string): Promise<void> => page.keyboard.press(key)

  await page.getByRole('button', { name: 'van' }).focus()
  await press('Enter')
  await until('the focus in the drawer', () => isFocused('.drawer'))
  await press('Tab')
  t.ok(await isFocused('.drawer button'), 'its first button is next')
  await press('Escape')
  await until('the focus back on the row', () => isFocused('.row[aria-current=false]'))
  t.match(await page.evaluate('document.activeElement.textContent'), /van/)
  await press('k')
  await until('the focus in the drawer', () => isFocused('.drawer'))
  await press('Escape')

  const account = page.getByRole('button', { name: 'Account', exact: true })
  await account.focus()
  await press('Enter')
  await page.getByRole('button', { name: 'Keyboard' }).focus()
  await press('Enter')
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
  await press('Escape')
  await until('the focus back on the menu', () => isFocused('[aria-controls=account-menu]'))
  await press('Enter')
  await page.getByRole('button', { name: 'Sign out' }).focus()
  await press('Tab')
  await until(
    'the menu to be closed, which would lie above the focus',
    async () => (await page.locator('.menu').count()) === 0,
  )

  await page.getByRole('link', { name: 'Geofences' }).click()
  const fences = page.getByRole('list', { name: 'Geofences' })
  await fences.getByText('Yard 0').waitFor()
  t.same(
    (await fences.getByRole('button').allTextContents()).slice(8, 11).map((name) => name.trim()),
    ['Yard 8', 'Yard 9', 'Yard 10'],
  )
  const more = fences.getByRole('button', { name: 'Show more' })
  for (const left of [250, 50]) {
    await fences.getByRole('button', { name: `Show more (${left})` }).waitFor()
    await more.focus()
    await press('Enter')
  }
  await until('all geofences', async () => (await fences.getByRole('button').count()) === FENCES)
})

test('on a phone what lies below the details takes no focus', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { page } = await openConsole(t, service, { width: 390, height: 844, hasMap: false })
  await signIn(page, login)
  await page.getByRole('button', { name: 'van' }).press('Enter')
  await page.getByRole('region', { name: 'van' }).waitFor()
  await until('the focus in the drawer', () => page.evaluate("document.activeElement.matches('.drawer')"))
  t.equal(await page.getByRole('list', { name: 'Trackers' }).count(), 0, 'the list is not read out')
  await page.keyboard.press('Escape')
  await until('the focus back on the row', () => page.evaluate("document.activeElement.matches('.side .row')"))
})
