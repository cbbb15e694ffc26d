import type { Page } from 'playwright-core'
import { test } from 'tap'
import { axe } from '../support/axe.ts'
import { skip } from '../support/browser.ts'
import { inHistory, liveAtNoon, openConsole, openConsoleWorld, signIn } from '../support/console.ts'
import { ask, until } from '../support/service.ts'

const SCHEMES = ['light', 'dark'] as const
const SIZES = [
  [1200, 700],
  [390, 844],
] as const

/** What axe finds and what sticks out, in both colours, wide and narrow. */
const look = async (page: Page, where: string): Promise<string[]> => {
  const found: string[] = []
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme })
      await until(colorScheme, async () => (await page.getAttribute('html', 'data-theme')) === colorScheme)
      found.push(...(await axe(page)).map((line) => `${where}, ${colorScheme}, ${width}: ${line}`))
    }
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
    if (wide > width) found.push(`${where}, ${width}: ${wide} pixels wide`)
  }
  return found
}

test('every page is well formed for those who do not see it', { skip, timeout: 1_800_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway, groupId } = world
  await liveAtNoon(world)
  const body = { geofenceGroupId: groupId, name: 'Yard', center: { lat: 52, lng: 21 }, radius: 500 }
  const { data: fence } = await ask(service, 'POST', '/geofence', { token, body })
  const begun = Date.now() - 20 * 60_000
  const points = ['van', 'car'].flatMap((externalId, at) =>
    Array.from({ length: 60 }, (_, i) => ({
      ...{ externalId, recordedAt: begun + i * 10_000, lat: 52 + i * 0.001, lng: 21 + at / 100 },
    })),
  )
  await gateway.send(points)
  await gateway.drained()
  await inHistory(world, points.length)
  const { data: trackers } = await ask(service, 'GET', '/trackers?sortBy=name', { token })
  const ids = trackers.map(({ _id }: { _id: string }) => _id)
  const { page, complaints } = await openConsole(t, service)
  const say = (language: string) =>
    page.evaluate(`localStorage.setItem('waymark-console', '${JSON.stringify({ language })}')`)

  for (const language of ['en', 'ar']) {
    await say(language)
    await page.reload()
    await page.locator('form').waitFor()
    t.same(await look(page, `sign in, ${language}`), [])
    await page.locator('form button.plain').click()
    await page.locator('[name=organization]').waitFor()
    t.same(await look(page, `sign up, ${language}`), [])
  }
  await say('en')
  await page.reload()
  await signIn(page, login)
  for (const language of ['en', 'ar']) {
    await say(language)
    await page.reload()
    await until('the trackers', async () => (await page.locator('.scroller .name').count()) === 2)
    t.equal(await page.getAttribute('html', 'dir'), language === 'ar' ? 'rtl' : 'ltr')
    const routes: [name: string, hash: string, there: string][] = [
      ['map', 'map', '.start'],
      ['tracker', `map/${ids[0]}`, '.drawer dl'],
      ['nobody', 'map/00000000-0000-7000-8000-000000000000', '.drawer h2'],
      ['look back', `back/${ids.join()}`, 'article ol'],
      ['no day', 'back', '.choose'],
      ['fences', 'fences', '.side ul button'],
      ['account', 'account', '.account-page form'],
    ]
    for (const [name, hash, there] of routes) {
      await page.evaluate(`location.hash = '#/${hash}'`)
      await page.locator(there).first().waitFor()
      t.same(await look(page, `${name}, ${language}`), [])
    }
    await page.evaluate("location.hash = '#/fences'")
    await page.locator('.side ul button', { hasText: fence.name }).click()
    await page.locator('.side form').waitFor()
    t.same(await look(page, `a fence, ${language}`), [])
    await page.evaluate("location.hash = '#/map'")
    await page.locator('.bell > button').click()
    t.same(await look(page, `bell, ${language}`), [])
    await page.locator('.account > button').click()
    t.same(await look(page, `menu, ${language}`), [])
  }
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
