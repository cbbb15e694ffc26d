import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask } from '../../support/service.ts'

const LACKING = 'Your role does not allow this (view/location-history).'

test('who may not see positions is told so wherever they would be', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, gateway, hubId, login } = await openConsoleWorld(t)
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  const { data: role } = await ask(service, 'POST', '/role', {
    token,
    body: { name: 'Few', permissions: ['view/tracker'] },
  })
  const few = { email: `few.${login.email}`, password: login.password }
  await ask(service, 'POST', '/user', { token, body: { name: 'Few', ...few, roleId: role._id, hubId: [hubId] } })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, few)
  await page.locator('.side').getByText(LACKING).waitFor()
  await page.evaluate(`location.hash = '#/map/${trackers[0]._id}'`)
  await page.locator('.details').getByText(LACKING).waitFor()
  await page.evaluate(`location.hash = '#/back/${trackers[0]._id}'`)
  await page.locator('.side').getByText(LACKING).waitFor()
  t.equal(await page.getByText('It was not heard that day.').count(), 0)
})
