import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'

const SEES = ['view/tracker', 'view/location-history', 'view/geofence']
/** The page asks every five minutes. */
const LATER = '05:30'

test('what others change meanwhile is there without a reload', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, hubId, gateway, groupId } = await openConsoleWorld(t)
  const owner = (method: 'POST' | 'PATCH', path: string, body: Json): Promise<Json> =>
    ask(service, method, path, { token, body })
  const fence = (name: string) =>
    owner('POST', '/geofence', { geofenceGroupId: groupId, name, center: { lat: 52, lng: 21 }, radius: 500 })
  await fence('Yard')
  const send = async (lat: number): Promise<void> => {
    await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
    await gateway.drained()
  }
  await send(52)
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  await owner('PATCH', `/tracker/${trackers[0]._id}`, { hubId })
  const { data: role } = await owner('POST', '/role', { name: 'Clerk', permissions: [...SEES, 'edit/geofence'] })
  const clerk = { email: `clerk.${login.email}`, password: login.password }
  await owner('POST', '/user', { name: 'Clerk', ...clerk, roleId: role._id, hubId: [hubId] })
  const may = (permissions: string[]) => owner('PATCH', `/role/${role._id}`, { permissions })

  const { page } = await openConsole(t, service, { hasMap: false })
  await page.clock.install()
  await page.reload()
  await signIn(page, clerk)
  await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
  await page.getByRole('link', { name: 'Geofences' }).click()
  const fences = page.getByRole('list', { name: 'Geofences' })
  await fences.getByText('Yard').waitFor()
  await page.getByRole('button', { name: '+ Circle' }).waitFor()

  await may(SEES)
  await fence('Field')
  t.equal(await fences.getByText('Field').count(), 0)
  await page.clock.fastForward(LATER)
  await fences.getByText('Field').waitFor()
  await until(
    'nothing to be drawn any more',
    async () => (await page.getByRole('button', { name: '+ Circle' }).count()) === 0,
  )
})

test('a role that shows no positions is told so, not that there are none', { skip, timeout: 900_000 }, async (t) => {
  const { service, token, login, hubId, gateway } = await openConsoleWorld(t)
  await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { data: role } = await ask(service, 'POST', '/role', { token, body: { name: 'Guest', permissions: [] } })
  const guest = { email: `guest.${login.email}`, password: login.password }
  await ask(service, 'POST', '/user', { token, body: { name: 'Guest', ...guest, roleId: role._id, hubId: [hubId] } })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, guest)
  await page.getByRole('status').filter({ hasText: 'Your role does not allow this (view/location-history)' }).waitFor()
})

test('a change that is refused shows at once what the role has lost, and nothing typed is lost', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, hubId } = await openConsoleWorld(t)
  const permissions = [...SEES, 'edit/geofence']
  const { data: role } = await ask(service, 'POST', '/role', { token, body: { name: 'Clerk', permissions } })
  const clerk = { email: `refused.${login.email}`, password: login.password }
  await ask(service, 'POST', '/user', { token, body: { name: 'Clerk', ...clerk, roleId: role._id, hubId: [hubId] } })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, clerk)
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('Yard')
  await page.getByLabel('Centre').fill('52.03, 21')
  await page.getByLabel('Centre').press('Tab')
  await ask(service, 'PATCH', `/role/${role._id}`, { token, body: { permissions: SEES } })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  await save.click()
  await page.getByRole('alert').filter({ hasText: 'You lack the permission' }).waitFor()
  await save.waitFor({ state: 'hidden' })
  t.equal(await page.getByLabel('Name').inputValue(), 'Yard')
})

test('what the role allows is asked again soon when it could not be loaded, and when a read is refused', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, hubId, groupId } = await openConsoleWorld(t)
  const owner = (method: 'POST' | 'PATCH', path: string, body: Json): Promise<Json> =>
    ask(service, method, path, { token, body })
  await owner('POST', '/geofence', {
    geofenceGroupId: groupId,
    name: 'Yard',
    center: { lat: 52, lng: 21 },
    radius: 500,
  })
  const { data: role } = await owner('POST', '/role', { name: 'Clerk', permissions: SEES })
  const clerk = { email: `unsure.${login.email}`, password: login.password }
  await owner('POST', '/user', { name: 'Clerk', ...clerk, roleId: role._id, hubId: [hubId] })
  const { page } = await openConsole(t, service, { hasMap: false })
  let asked = 0
  let isLost = true
  await page.route('**/user/permissions', (route) => {
    asked++
    return isLost ? route.abort() : route.continue()
  })
  await signIn(page, clerk)
  const unsure = page.getByText('What your role allows could not be loaded yet.')
  await unsure.waitFor()
  await until('it to ask again', () => asked > 2)
  isLost = false
  await unsure.waitFor({ state: 'hidden' })
  await page.getByRole('link', { name: 'Geofences' }).click()
  const fence = page.getByRole('list', { name: 'Geofences' }).getByText('Yard')
  await fence.waitFor()

  const before = asked
  const permissions = SEES.filter((one) => one !== 'view/location-history')
  await owner('PATCH', `/role/${role._id}`, { permissions })
  await fence.click()
  await until('it to look', () => asked > before)
  await page.getByRole('region', { name: 'Visits' }).waitFor({ state: 'hidden' })
  t.ok(asked <= before + 3, 'it does not ask for each read that is refused')
})

test('a role without geofences sees the fleet live, and goes on when they are taken away', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, hubId, groupId, gateway } = await openConsoleWorld(t)
  const owner = (method: 'POST' | 'PATCH', path: string, body: Json): Promise<Json> =>
    ask(service, method, path, { token, body })
  const fence = { geofenceGroupId: groupId, name: 'Yard', center: { lat: 52, lng: 21 }, radius: 500 }
  await owner('POST', '/geofence', fence)
  const send = async (lat: number): Promise<void> => {
    await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
    await gateway.drained()
  }
  await send(52.1)
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  await owner('PATCH', `/tracker/${trackers[0]._id}`, { hubId })
  const without = SEES.filter((one) => one !== 'view/geofence')
  const { data: role } = await owner('POST', '/role', { name: 'Clerk', permissions: without })
  const clerk = { email: `without.${login.email}`, password: login.password }
  await owner('POST', '/user', { name: 'Clerk', ...clerk, roleId: role._id, hubId: [hubId] })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, clerk)
  const state = page.locator('header .state')
  await state.filter({ hasText: 'Live' }).waitFor()
  await page.getByRole('cell', { name: '52.10000' }).waitFor()
  await owner('PATCH', `/role/${role._id}`, { permissions: SEES })
  await page.reload()
  const link = page.getByRole('link', { name: 'Geofences' })
  await link.waitFor()
  await state.filter({ hasText: 'Live' }).waitFor()
  await send(52)
  await page.getByText('bus entered Yard').waitFor()
  await owner('PATCH', `/role/${role._id}`, { permissions: without })
  await link.waitFor({ state: 'hidden' })
  await send(52.2)
  await page.getByRole('cell', { name: '52.20000' }).waitFor()
})

test('what could not be loaded when the page opened is loaded soon, and is not said to be empty', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, groupId, gateway } = await openConsoleWorld(t)
  const fence = { geofenceGroupId: groupId, name: 'Yard', center: { lat: 52, lng: 21 }, radius: 500 }
  await ask(service, 'POST', '/geofence', { token, body: fence })
  await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat: 52.1, lng: 21 }])
  await gateway.drained()
  const { page } = await openConsole(t, service, { hasMap: false })
  let isLost = true
  for (const path of ['**/live-positions?*', '**/geofences?*'])
    await page.route(path, (route) => (isLost ? route.abort() : route.continue()))
  await signIn(page, login)
  await page.locator('header .state').filter({ hasText: 'Live' }).waitFor()
  await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
  await page.getByRole('link', { name: 'Geofences' }).click()
  const fences = page.getByRole('list', { name: 'Geofences' })
  await fences.getByText('Loading').waitFor()
  isLost = false
  await fences.getByText('Yard').waitFor()
})
