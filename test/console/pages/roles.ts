import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { type ConsoleWorld, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, until } from '../../support/service.ts'

const LACKING = 'Your role does not allow this (view/location-history).'

/** Somebody of the world's hubs whose role has these permissions alone. */
const personWith = async (
  { service, token, hubId, login }: ConsoleWorld,
  permissions: readonly string[],
  hubs = [hubId],
): Promise<ConsoleWorld['login']> => {
  const { data: role } = await ask(service, 'POST', '/role', { token, body: { name: 'Few', permissions } })
  const few = { email: `few.${login.email}`, password: login.password }
  await ask(service, 'POST', '/user', { token, body: { name: 'Few', ...few, roleId: role._id, hubId: hubs } })
  return few
}

test('who may not see positions is told so wherever they would be', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, gateway } = world
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  const few = await personWith(world, ['view/tracker'])
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, few)
  await page.locator('.side').getByText(LACKING).waitFor()
  await page.evaluate(`location.hash = '#/map/${trackers[0]._id}'`)
  await page.locator('.details').getByText(LACKING).waitFor()
  await page.evaluate(`location.hash = '#/back/${trackers[0]._id}'`)
  await page.locator('.side').getByText(LACKING).waitFor()
  t.equal(await page.getByText('It was not heard that day.').count(), 0)
})

test('what a role may not see is not asked for, and times are those of the reader where the zone is hidden', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, gateway } = world
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  const none = await personWith(world, [])
  const { page, complaints } = await openConsole(t, service, { hasMap: false, timezoneId: 'Asia/Tokyo' })
  const refused: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`)
  })
  await signIn(page, none)
  await page.locator('.side').getByText(LACKING).waitFor()
  await page
    .getByRole('list', { name: 'Events' })
    .getByText('Your role does not allow this (view/geofence, view/location-history).')
    .waitFor()
  await page.evaluate(`location.hash = '#/back/${trackers[0]._id}'`)
  await page.locator('.side').getByText(LACKING).waitFor()
  await page.getByText('Times are those of Asia/Tokyo.').waitFor()
  t.equal(await page.getByRole('button', { name: 'CSV' }).count(), 0, 'nothing is there to be downloaded')
  t.same(refused, [])
  t.same(complaints, [])
})

test('who is bound to hubs connects a phone to one of them', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, hubId } = world
  const hub = { name: 'South', lat: 48, lng: 11 }
  const { data: south } = await ask(service, 'POST', '/hub', { token, body: hub })
  const few = await personWith(world, ['view/tracker', 'edit/tracker', 'view/hub'], [hubId, south._id])
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, few)
  // Automations, which this role may not see, are no reason to hide the first steps.
  await page.getByRole('region', { name: 'First steps' }).getByRole('button', { name: 'Connect a phone' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Phone')
  await dialog.getByLabel('Hub').selectOption({ label: 'South' })
  await dialog.getByRole('button', { name: 'Connect a phone' }).click()
  // It does not appear here for who may not see positions.
  await dialog.getByText(LACKING).waitFor()
  const { data } = await ask(service, 'GET', '/trackers', { token })
  t.same(
    data.map((one: { name: string; hubId: string }) => [one.name, one.hubId]),
    [['Phone', south._id]],
  )
  t.same(complaints, [])
})

test('who may not see a tracker move is offered no automation that tells of it', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const few = await personWith(world, ['view/automation', 'edit/automation', 'view/geofence', 'edit/geofence'])
  const { page, complaints } = await openConsole(t, world.service, { hasMap: false })
  await signIn(page, few)
  await page.getByRole('button', { name: 'Let an automation tell you' }).click()
  const options = page.getByRole('dialog').getByLabel('When').locator('option')
  await until('the groups', async () => (await options.and(page.locator(':enabled')).count()) > 0)
  t.same(await options.and(page.locator(':enabled')).allTextContents(), [
    'a tracker enters a geofence',
    'a tracker leaves a geofence',
  ])
  t.same(complaints, [])
})
