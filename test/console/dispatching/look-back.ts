import type { Page } from 'playwright-core'
import { test } from 'tap'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { liveAtNoon, mapOf, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const TRACKERS = 22
const TOGETHER = 20
const STEPS = 30
const STEP_MS = 10_000

const lookBackAt = async (page: Page, ids: readonly string[]): Promise<void> => {
  await page.evaluate(`location.hash = '#/back/${ids.join()}'`)
  await page.getByRole('list', { name: 'Trips and stops' }).first().waitFor()
}

test('twenty trackers on one clock, and the map follows one of them', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, gateway } = await openConsoleWorld(t)
  const begun = Date.now() - (STEPS + 1) * STEP_MS
  // Side by side, northwards.
  const points = Array.from({ length: TRACKERS }, (_, at) =>
    Array.from({ length: STEPS }, (_, i) => ({
      ...{ externalId: `van-${at + 10}`, recordedAt: begun + i * STEP_MS, lat: 52 + i * 0.002, lng: 21 + at / 100 },
    })),
  )
  await gateway.send(points.flat())
  await gateway.drained()
  const { data } = await ask(service, 'GET', '/trackers?sortBy=name&limit=100', { token })
  const ids = data.map(({ _id }: Json) => _id as string)
  const { page, complaints } = await openConsole(t, service, { hasMotion: true })
  await signIn(page, login)
  const map = await mapOf(page)
  await lookBackAt(page, ids.slice(0, TOGETHER - 1))
  const full = page.getByText(`Up to ${TOGETHER} trackers move on one clock`)
  t.equal(await full.count(), 0)
  const add = page.getByLabel('Add a tracker')
  await add.selectOption({ label: `van-${TOGETHER + 9}` })
  await full.waitFor()
  await until('twenty of them', async () => (await page.locator('article').count()) === TOGETHER)
  t.ok(await add.isDisabled(), 'the next is refused, with words')
  await lookBackAt(page, ids)
  await until('those that fit', async () => (await page.locator('article').count()) === TOGETHER)
  t.same(await axe(page), [])
  const slider = page.getByRole('slider')
  const middle = begun + 15 * STEP_MS
  await slider.fill(String(Math.floor(middle / 1000) * 1000))
  await until('all of them on the map', async () => (await map('view.trackers.drawn')) === TOGETHER)

  const center = (): Promise<{ lng: number; lat: number }> => map('({ ...map.getCenter() })')
  await page.getByRole('button', { name: 'Follow van-12' }).click()
  await until('it in the middle', async () => Math.abs((await center()).lng - 21.02) < 1e-4)
  const before = await center()
  await slider.focus()
  await page.keyboard.press('ArrowRight')
  await until(
    'the map to follow ten seconds on',
    async () => Math.abs((await center()).lat - before.lat - 0.002) < 2e-4,
  )
  await page.keyboard.press('Space')
  await until('the end', async () => Math.abs((await center()).lat - 52 - (STEPS - 1) * 0.002) < 1e-4)

  await page.getByLabel('Rate').selectOption('×1')
  await slider.fill(String(Math.floor(middle / 1000) * 1000))
  await page.getByRole('button', { name: 'Play' }).click()
  const box = (await page.locator('.ground .map').boundingBox())!
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.mouse.move(x + 80, y, { steps: 5 })
  await page.mouse.up()
  await page
    .locator('button[aria-pressed="false"]', { hasText: 'Follow' })
    .nth(TOGETHER - 1)
    .waitFor()
  await until('the map to come to rest', async () => (await map('map.isMoving()')) === false)
  const dragged = await center()
  const playedAt = await slider.inputValue()
  await until('the clock to go on', async () => (await slider.inputValue()) !== playedAt)
  t.same(await center(), dragged, 'a map that was dragged stays where it is')
  await slider.focus()
  await page.keyboard.press('f')
  await until('the first one in the middle', async () => Math.abs((await center()).lng - 21) < 1e-4)

  await page.evaluate("location.hash = '#/back'")
  await page.getByText('Choose a tracker, and see where it was all day.').waitFor()
  await until('none on the map', async () => (await map('view.trackers.drawn')) === 0)
  t.equal((await map('map.getSource("trail").getData()')).features.length, 0, 'nothing of the day before is left')
  t.equal(await page.locator('.bar .words').textContent(), '')
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('a day without a tracker stays a day', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login } = world
  await liveAtNoon(world)
  const { data: tracker } = await ask(service, 'POST', '/tracker', { token, body: { name: 'Van', kind: 'device' } })
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await page.getByRole('link', { name: 'Look back' }).click()
  const day = page.getByLabel('Day', { exact: true })
  const today = await day.inputValue()
  await page.getByRole('button', { name: 'The day before' }).click()
  await until('the day before', async () => (await day.inputValue()) < today)
  await page.getByText('Choose a tracker, and see where it was all day.').waitFor()
  await page.evaluate(`location.hash = '#/back/${tracker._id}/${await day.inputValue()}'`)
  await page.getByRole('button', { name: 'Remove Van' }).click()
  await page.getByText('Choose a tracker, and see where it was all day.').waitFor()
  // One that is deleted, or of a hub that the reader does not have.
  await page.evaluate("location.hash = '#/back/00000000-0000-7000-8000-000000000000'")
  await page.getByText('This tracker is not there any more.').waitFor()
  await page.goBack()
  await page.getByText('Choose a tracker, and see where it was all day.').waitFor()
  t.ok((await day.inputValue()) < today, 'the day stays where the last tracker is removed')
  t.same(complaints, [])
})
