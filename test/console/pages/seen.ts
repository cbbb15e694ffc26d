import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { until } from '../../support/service.ts'

test('what is chosen is seen in forced colours, and places read from left to right in Arabic', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  const begunAt = Date.now() - 60_000
  await gateway.send(
    Array.from({ length: 7 }, (_, i) => ({
      externalId: 'van',
      recordedAt: begunAt + i * 10_000,
      lat: 52 + i / 500,
      lng: 21,
    })),
  )
  await gateway.drained()
  const { page } = await openConsole(t, service, { hasMap: false, timezoneId: 'America/New_York' })
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'van')
  await page.emulateMedia({ forcedColors: 'active' })
  const isOutlined = (selector: string): Promise<boolean> =>
    page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).outlineStyle === 'solid'`)
  await page.getByRole('list', { name: 'Trackers' }).getByText('van').click()
  await page.getByRole('region', { name: 'van' }).waitFor()
  t.ok(await isOutlined('.row[aria-current=true]'), 'the row')
  t.ok(await isOutlined('.chips [aria-pressed=true]'), 'the filter')
  t.notOk(await isOutlined('.chips [aria-pressed=false]'), 'another one')
  const lineUnder = (link: string): Promise<string> =>
    page.evaluate(`getComputedStyle(document.querySelector('nav a[href="${link}"]')).borderBottomColor`)
  t.not(await lineUnder('#/map'), await lineUnder('#/fences'), 'the page')
  await page.emulateMedia({ forcedColors: 'none' })

  await page.setViewportSize({ width: 390, height: 844 })
  await page.locator('.zone', { hasText: 'UTC' }).waitFor()
  await page.evaluate("localStorage.setItem('waymark-console', JSON.stringify({ language: 'ar' }))")
  await page.reload()
  await until('the page to be in Arabic', async () => (await page.getAttribute('html', 'dir')) === 'rtl')
  await page.getByText('كم').first().waitFor()
  await page.evaluate("location.hash = '#/fences'")
  const begin = page.locator('.side .buttons button')
  const direction = (field: string): Promise<string> =>
    page.evaluate(`getComputedStyle(document.querySelector('${field}')).direction`)
  await begin.nth(1).click()
  t.equal(await direction('form input[placeholder]'), 'ltr', 'a centre')
  await page.locator('form .buttons button').last().click()
  await begin.nth(0).click()
  t.equal(await direction('textarea'), 'ltr', 'corners')
})
