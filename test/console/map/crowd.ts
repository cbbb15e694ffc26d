import { test } from 'tap'
import { axe } from '../../support/axe.ts'
import { skip } from '../../support/browser.ts'
import { mapOf, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const TRACKERS = 320
/** Two vans parked on one spot, away from the others. */
const PARKED = [21.2, 52.2] as const

test('a crowd is grouped, and who stands on one spot is listed', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, gateway, groupId } = await openConsoleWorld(t)
  const crowd = Array.from({ length: TRACKERS }, (_, i) => ({
    ...{
      externalId: `bus-${i}`,
      recordedAt: Date.now(),
      lat: 52 + (i % 20) * 0.002,
      lng: 21 + Math.floor(i / 20) * 0.002,
    },
  }))
  const parked = ['van-1', 'van-2'].map((externalId) => ({
    ...{ externalId, recordedAt: Date.now(), lat: PARKED[1], lng: PARKED[0] },
  }))
  await gateway.send([...crowd, ...parked])
  await gateway.drained()
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await page.getByRole('button', { name: `All ${TRACKERS + 2}` }).waitFor()
  const map = await mapOf(page)
  await map('void map.jumpTo({ center: [21.1, 52.1], zoom: 9 })')
  const clusters = async (): Promise<Json[]> => (await map('map.getSource("clusters").getData()')).features
  await until('groups', async () => (await clusters()).length > 0 && (await map('view.trackers.drawn')) < TRACKERS)
  await page.getByLabel('Group markers').uncheck()
  await until('each tracker by itself', async () => (await map('view.trackers.drawn')) === TRACKERS + 2)
  await page.reload()
  const again = await mapOf(page)
  await until('all of them after a reload', async () => (await again('view.trackers.drawn')) === TRACKERS + 2)
  t.notOk(await page.getByLabel('Group markers').isChecked(), 'what was chosen is kept')

  await again(`void map.jumpTo({ center: ${JSON.stringify(PARKED)}, zoom: 15 })`)
  const box = (await page.locator('.ground .map').boundingBox())!
  const spot = page.getByRole('dialog', { name: /^2 / })
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
  await spot.waitFor()
  t.same(await axe(page), [], 'the list of a spot')
  await spot.getByRole('button', { name: 'van-2' }).click()
  await page.getByRole('heading', { name: 'van-2' }).waitFor()

  // What others make meanwhile is there without a reload, though the list may lack it for a moment.
  const none = { data: [], nextCursor: null }
  await page.route('**/api/v3/geofences?*', (route) => route.fulfill({ json: none }), { times: 1 })
  const fence = { geofenceGroupId: groupId, name: 'New yard', center: { lat: PARKED[1], lng: PARKED[0] }, radius: 200 }
  await ask(service, 'POST', '/geofence', { token, body: fence })
  await page.getByRole('list', { name: 'Events' }).getByText('van-1 entered New yard').waitFor()
  await page.getByLabel('In geofence').selectOption({ label: 'New yard' })
  await until('those inside', async () => (await namesListed(page)).join() === 'van-1,van-2')

  const { data: sessions } = await ask(service, 'GET', '/auth/sessions', { token })
  for (const { _id, isCurrent } of sessions)
    if (!isCurrent) await ask(service, 'DELETE', `/auth/session/${_id}`, { token })
  await page.getByRole('form', { name: 'Sign in' }).getByText('Your session has ended').waitFor()
  await page.getByLabel('Password').fill(login.password)
  await page.getByLabel('E-mail').fill(login.email)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'van-2' }).waitFor()
  t.same(
    complaints.filter((text) => !/Failed to load resource: .* 401/.test(text)),
    [],
    'no error in the console, no breach of the content policy',
  )
})
