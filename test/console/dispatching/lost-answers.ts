import type { Page } from 'playwright-core'
import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, sharedService, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const UNREACHABLE = 'cannot be reached'

/** The service carries the next such request out, and its answer is lost. */
const loseAnswer = (page: Page, path: string): Promise<unknown> =>
  page.route(
    path,
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )

/** The next such request does not arrive. */
const loseRequest = (page: Page, path: string): Promise<unknown> =>
  page.route(path, (route) => route.abort(), { times: 1 })

test('what is made is made once, however often it is sent because answers were lost', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login } = await openConsoleWorld(t)
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  const stored = async (path: string): Promise<Json[]> => (await ask(service, 'GET', path, { token })).data
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const unreachable = page.getByRole('alert').filter({ hasText: UNREACHABLE })

  const automation = page.getByRole('dialog', { name: 'Let an automation tell you' })
  await page.getByRole('region', { name: 'First steps' }).getByRole('button', { name: 'Let an automation' }).click()
  await automation.getByLabel('When').selectOption('a tracker enters a geofence')
  await automation.getByRole('textbox').fill('https://example.com/hook')
  await loseAnswer(page, '**/api/v3/automation')
  await automation.getByRole('button', { name: 'Save' }).click()
  await unreachable.waitFor()
  await automation.getByRole('textbox').fill('https://example.com/hooks')
  await automation.getByRole('button', { name: 'Save' }).click()
  await automation.getByText(/^whsec_/).waitFor()
  t.same(
    (await stored('/automations')).map(({ automationDetails }) => automationDetails.url),
    ['https://example.com/hooks'],
  )
  await automation.getByRole('button', { name: 'Close' }).click()

  const phone = page.getByRole('dialog', { name: 'Connect a phone' })
  await page.getByRole('region', { name: 'First steps' }).getByRole('button', { name: 'Connect a phone' }).click()
  await phone.getByLabel('Name').fill('Phon')
  await loseAnswer(page, '**/api/v3/tracker')
  await phone.getByRole('button', { name: 'Connect a phone' }).click()
  await unreachable.waitFor()
  await phone.getByLabel('Name').fill('Phone')
  await phone.getByRole('button', { name: 'Connect a phone' }).click()
  await phone.getByRole('img', { name: 'QR' }).waitFor()
  t.same(
    (await stored('/trackers')).map(({ name }) => name),
    ['Phone'],
  )
  await phone.getByRole('button', { name: 'Close' }).click()

  await page.getByRole('link', { name: 'Geofences' }).click()
  const draw = async (name: string): Promise<void> => {
    await button('+ Circle').click()
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Centre').fill('52.03, 21')
    await page.getByLabel('Centre').press('Tab')
  }
  await draw('Yard')
  await loseAnswer(page, '**/api/v3/geofence')
  await button('Save').click()
  await unreachable.waitFor()
  // Nor is it made twice when the first request is still being carried out.
  const running = { status: false, code: 'in_progress', message: 'It is still running.' }
  await page.route('**/api/v3/geofence', (route) => route.fulfill({ status: 409, json: running }), { times: 1 })
  await button('Save').click()
  await page.getByText('Saved.').waitFor()
  await draw('Fiel')
  await loseAnswer(page, '**/api/v3/geofence')
  await button('Save').click()
  await unreachable.waitFor()
  await page.getByLabel('Name').fill('Field')
  await loseRequest(page, '**/api/v3/geofence')
  await button('Save').click()
  await unreachable.waitFor()
  await button('Save').click()
  await page.getByText('Saved.').waitFor()
  const fences = async (): Promise<string[]> => (await stored('/geofences')).map(({ name }) => name).sort()
  t.same(await fences(), ['Field', 'Yard'])
  await draw('Yard')
  await button('Save').click()
  await page.getByText('Saved.').waitFor()
  await until('another one that is meant', async () => (await fences()).join() === 'Field,Yard,Yard')

  const drop = { type: 'Feature', properties: { name: 'Park' }, geometry: SQUARE }
  const buffer = Buffer.from(JSON.stringify({ type: 'FeatureCollection', features: [drop] }))
  const file = { name: 'parks.geojson', mimeType: 'application/geo+json', buffer }
  await loseAnswer(page, '**/geofences/import?*')
  await page.getByLabel('Import GeoJSON').setInputFiles(file)
  await unreachable.waitFor()
  await page.getByLabel('Import GeoJSON').setInputFiles(file)
  await page.getByText('1 imported, 0 rejected.').waitFor()
  t.same(await fences(), ['Field', 'Park', 'Yard', 'Yard'])
})

test('an organization is made once where answers to signing up, or in, were lost', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { page } = await openConsole(t, await sharedService(), { hasMap: false })
  await page.getByRole('button', { name: /New here/ }).click()
  await page.getByLabel('Your name').fill('Ada')
  await page.getByLabel('E-mail').fill('ada.lost@example.com')
  await page.getByLabel('Password').fill('correct horse battery staple')
  await page.getByRole('textbox', { name: 'Organization' }).fill('Lost Couriers')
  await page.getByLabel('First site').fill('Depot')
  await page.getByLabel('Where it is').fill('52.23, 21.01')
  const make = page.getByRole('button', { name: 'Make an organization' })
  const unreachable = page.getByRole('alert').filter({ hasText: UNREACHABLE })
  await loseAnswer(page, '**/auth/signup')
  await make.click()
  await unreachable.waitFor()
  await loseRequest(page, '**/auth/login')
  await make.click()
  await unreachable.waitFor()
  await make.click()
  await page.getByText('No tracker has sent a position yet').waitFor()
})

const SQUARE = {
  type: 'Polygon',
  coordinates: [
    [
      [21, 52],
      [21.01, 52],
      [21.01, 52.01],
      [21, 52.01],
      [21, 52],
    ],
  ],
}
