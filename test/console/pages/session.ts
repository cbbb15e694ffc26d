import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import {
  inHistory,
  liveAtNoon,
  mapOf,
  namesListed,
  openConsole,
  openConsoleWorld,
  signIn,
} from '../../support/console.ts'
import { ask, until } from '../../support/service.ts'

test('a reader stays signed in, looks back at a day, and signs out', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway } = world
  await liveAtNoon(world)
  const begun = Date.now() - 20 * 60_000
  // North for eight minutes, then at rest.
  const points = Array.from({ length: 110 }, (_, i) => ({
    externalId: 'van',
    recordedAt: begun + i * 10_000,
    lat: 52 + Math.min(i, 50) * 0.001,
    lng: 21,
  }))
  await gateway.send(points)
  await gateway.drained()
  await inHistory(world, points.length)
  await until('a trip', async () => ((await ask(service, 'GET', '/trips', { token })).data.length as number) > 0)
  const { page, context, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'van')
  t.same(
    await page.evaluate('Object.values({ ...localStorage, ...sessionStorage }).filter((text) => text.length > 100)'),
    [],
  )

  await page.reload()
  await until('the tracker after F5', async () => (await namesListed(page)).join() === 'van')
  const tab = await context.newPage()
  await tab.goto(service.url)
  await until('the tracker in a second tab', async () => (await namesListed(tab)).join() === 'van')
  await tab.close()

  await page.getByText('van', { exact: true }).click()
  await page.getByRole('button', { name: 'Look back' }).click()
  const list = page.getByRole('list', { name: 'Trips and stops' })
  await list.waitFor()
  t.match(await page.locator('article').textContent(), /Distance\s*5\.[56] km/)
  const slider = page.getByRole('slider')
  const map = await mapOf(page)
  await until('the tracker on the map', async () => (await map('view.trackers.drawn')) === 1)
  t.ok(Math.abs(Number(await slider.inputValue()) - begun) <= 1000, 'it begins with the first point')
  await slider.focus()
  await page.keyboard.press('ArrowRight')
  await page.getByLabel('Rate').selectOption('×60')
  await page.getByRole('button', { name: 'Play' }).click()
  const end = begun + 100 * 10_000
  await until('the clock to run', async () => Number(await slider.inputValue()) > end)
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('link', { name: 'Map' }).click()
  await page.getByRole('list', { name: 'Trackers' }).waitFor()

  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByLabel('Language').selectOption('العربية')
  await page.getByRole('list', { name: 'أجهزة التتبّع' }).waitFor()
  t.equal(await page.getAttribute('html', 'dir'), 'rtl')
  await page.getByLabel('اللغة').selectOption('English')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
