import { test } from 'tap'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { namesListed, NOTE_SWIPES, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { until } from '../../support/service.ts'

test('on a phone the list is a sheet of three sizes', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  const trackers = ['bus', 'van'].map((externalId) => ({ externalId, recordedAt: Date.now(), lat: 52, lng: 21 }))
  await gateway.send(trackers)
  await gateway.drained()
  const { page, complaints } = await openConsole(t, service, { width: 390, height: 844, hasTouch: true })
  await signIn(page, login)
  await until('the trackers', async () => (await namesListed(page)).length === 2)
  const grip = page.getByRole('button', { name: /^Size of the list/ })
  const size = async (): Promise<string> => ((await grip.getAttribute('aria-label')) ?? '').split(': ')[1] ?? ''
  const heightOf = async (selector: string): Promise<number> =>
    Math.round((await page.locator(selector).boundingBox())?.height ?? 0)
  const cdp = await page.context().newCDPSession(page)
  const drag = async (by: number): Promise<void> => {
    const { x, y, width, height } = (await grip.boundingBox())!
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', dy?: number) =>
      cdp.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: dy === undefined ? [] : [{ x: x + width / 2, y: y + height / 2 + dy }],
      })
    await touch('touchStart', 0)
    for (const part of [0.3, 0.6, 1]) await touch('touchMove', by * part)
    await touch('touchEnd')
  }

  await page.evaluate(NOTE_SWIPES)
  t.equal(await size(), 'half')
  const half = await heightOf('.side')
  await drag(-350)
  await until('the large one', async () => (await size()) === 'large')
  t.ok((await heightOf('.side')) > half + 150 && (await heightOf('.ground')) >= 44, 'the map keeps a strip')
  t.same(await axe(page), [], 'large')
  await page.getByRole('list', { name: 'Trackers' }).getByText('van', { exact: true }).tap()
  await page.locator('.drawer dl').waitFor()
  t.equal(await size(), 'half', 'what is chosen is seen on the map')
  await until('the details to have its size', async () => (await heightOf('.details')) === half)
  await drag(400)
  await until('the small one', async () => (await size()) === 'small')
  t.ok((await heightOf('.details')) < 90 && (await page.locator('.drawer h2').isVisible()), 'the name is left')
  t.same(await axe(page), [], 'small')
  await drag(-30)
  await until('it to fall back', async () => (await heightOf('.details')) < 90)
  await grip.tap()
  await until('a tap to make it larger', async () => (await size()) === 'half')
  t.equal(await page.evaluate('globalThis.isSwipe'), false, 'a drag is no swipe, whose end would swallow a tap')
  await grip.press('ArrowUp')
  t.equal(await size(), 'large')
  await grip.press('ArrowDown')
  await grip.press('ArrowDown')
  await grip.press('ArrowDown')
  t.equal(await size(), 'small', 'and by keys')
  await page.setViewportSize({ width: 1200, height: 700 })
  // A wide page needs none.
  await grip.waitFor({ state: 'hidden' })
  await until('the details to be high', async () => (await heightOf('.details')) > 500)
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('on a page at 400 % nothing covers the sheet', { skip, timeout: 900_000 }, async (t) => {
  const { service, login } = await openConsoleWorld(t)
  const { page } = await openConsole(t, service, { width: 320, height: 256, hasTouch: true, hasMap: false })
  await signIn(page, login)
  await page.getByRole('region', { name: 'First steps' }).waitFor()
  await page.getByRole('button', { name: 'Size of the list: half' }).tap()
  await page.getByRole('button', { name: 'Size of the list: large' }).waitFor()
})
