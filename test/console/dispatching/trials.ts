import type { Page } from 'playwright-core'
import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const BACKTEST = '**/backtest'

/** Begins a trial whose answer never comes. */
const beginTrial = async (page: Page): Promise<void> => {
  await page.route(BACKTEST, () => undefined)
  const asked = page.waitForRequest(BACKTEST)
  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Centre').fill('52.03, 21')
  await page.getByLabel('Centre').press('Tab')
  await page.getByRole('button', { name: 'Try it' }).click()
  await asked
}

test('a page that is closed during a trial leaves no geofence behind', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login } = await openConsoleWorld(t)
  const { page, context } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  const stored = async (): Promise<Json[]> => (await ask(service, 'GET', '/geofences', { token })).data
  const toFences = (on: Page) => on.getByRole('link', { name: 'Geofences' }).click()
  await toFences(page)
  await beginTrial(page)
  t.equal((await stored()).length, 1)
  const other = await context.newPage()
  await other.goto(service.url)
  await toFences(other)
  await other.getByRole('list', { name: 'Geofences' }).getByText('Draft').waitFor()
  await page.goto(service.url)
  await until('the geofence to be deleted', async () => (await stored()).length === 0)

  // The request of a page that is closed may be lost: the next opening of the page deletes it.
  await toFences(page)
  await beginTrial(page)
  await page.evaluate('globalThis.fetch = () => new Promise(() => undefined)')
  await page.goto(service.url)
  await page.getByRole('link', { name: 'Geofences' }).waitFor()
  t.equal((await stored()).length, 1, 'it was lost')
  await toFences(page)
  await until('the geofence to be deleted', async () => (await stored()).length === 0)
  await until('nothing to be remembered', () => page.evaluate("localStorage.getItem('waymark-trials') === null"))
})
