import type { Page } from 'playwright-core'
import { test } from 'tap'
import { axe } from '../support/axe.ts'
import { skip } from '../support/browser.ts'
import { inHistory, liveAtNoon, openConsole, openConsoleWorld, signIn } from '../support/console.ts'
import { ask, until } from '../support/service.ts'

const WIDE = { width: 1200, height: 700 }
const NARROW = { width: 390, height: 844 }
/** Every two of language, colours and size once: what is wrong is wrong in one of them, or where two of them meet. */
const VIEWS = [
  { language: 'en', colorScheme: 'light', size: WIDE },
  { language: 'en', colorScheme: 'dark', size: NARROW },
  { language: 'ar', colorScheme: 'light', size: NARROW },
  { language: 'ar', colorScheme: 'dark', size: WIDE },
] as const

/** Reloads the page in a view. */
const turn = async (page: Page, { language, colorScheme, size }: (typeof VIEWS)[number]): Promise<void> => {
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme })
  await page.evaluate(`localStorage.setItem('waymark-console', '${JSON.stringify({ language })}')`)
  await page.reload()
  await until(colorScheme, async () => (await page.getAttribute('html', 'data-theme')) === colorScheme)
}

/** What axe finds and what sticks out. */
const look = async (page: Page): Promise<string[]> => {
  const found = await axe(page)
  const [wide, width] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as [number, number]
  return wide > width ? [...found, `${wide} pixels wide`] : found
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

  for (const view of VIEWS) {
    const seen = async (where: string) => t.same(await look(page), [], `${where}, ${JSON.stringify(view)}`)
    await turn(page, view)
    await page.locator('form').waitFor()
    await seen('sign in')
    await page.locator('form button.plain').click()
    await page.locator('[name=organization]').waitFor()
    await seen('sign up')
  }
  await page.evaluate('localStorage.clear()')
  await page.reload()
  await signIn(page, login)
  for (const view of VIEWS) {
    const seen = async (where: string) => t.same(await look(page), [], `${where}, ${JSON.stringify(view)}`)
    await turn(page, view)
    await until('the trackers', async () => (await page.locator('.scroller .name').count()) === 2)
    t.equal(await page.getAttribute('html', 'dir'), view.language === 'ar' ? 'rtl' : 'ltr')
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
      await seen(name)
    }
    await page.evaluate("location.hash = '#/fences'")
    await page.locator('.side ul button', { hasText: fence.name }).click()
    await page.locator('.side form').waitFor()
    await seen('a fence')
    await page.evaluate("location.hash = '#/map'")
    await page.locator('.bell > button').click()
    await seen('bell')
    await page.locator('.account > button').click()
    await seen('menu')
  }
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
