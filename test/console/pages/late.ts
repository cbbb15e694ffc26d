import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { liveAtNoon, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, until } from '../../support/service.ts'

const GONE = 'This tracker is not there any more.'
/** Notes every text that the page shows, however briefly. */
const NOTE_TEXTS = `{
  globalThis.texts = new Set()
  new MutationObserver(() => {
    for (const one of document.querySelectorAll('h2, p')) texts.add(one.textContent.trim())
  }).observe(document, { childList: true, subtree: true, characterData: true })
}`

test('what is not known yet is not said, and what does not come holds nothing up', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway } = world
  await gateway.send([{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  const [van] = trackers
  const { data: silent } = await ask(service, 'POST', '/tracker', { token, body: { name: 'Silent', kind: 'device' } })
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await page.addInitScript(NOTE_TEXTS)
  let isGivenUp = false
  page.on('requestfailed', (request) => {
    isGivenUp ||= request.url().includes('/live-positions')
  })
  await page.route('**/live-positions?*', () => undefined)
  await page.evaluate(`location.hash = '#/map/${van._id}'`)
  await page.reload()
  await page.getByRole('region', { name: 'van' }).waitFor()
  await until('the tracker', async () => (await namesListed(page)).join() === 'van')
  t.equal(isGivenUp, false, 'an answer that does not come holds nothing up')
  const texts = (await page.evaluate('[...texts]')) as string[]
  t.ok(texts.includes('Loading'))
  t.notOk(texts.includes(GONE), 'a tracker that is being loaded is not gone')
  t.notOk(
    texts.some((text) => text.startsWith('No tracker has sent a position yet.')),
    'nor is a list empty that is being loaded',
  )
  await page.evaluate(`location.hash = '#/map/${silent._id}'`)
  await page.getByRole('region', { name: 'Silent' }).getByText('This tracker has not sent a position yet.').waitFor()
  await ask(service, 'DELETE', `/tracker/${silent._id}`, { token })
  await page.reload()
  await page.getByRole('heading', { name: GONE }).waitFor()
  t.same(complaints, [], 'no error in the console')
})

test('parts of the page that could not be loaded leave no empty page, nor a button without an effect', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, login } = await openConsoleWorld(t)
  const { page } = await openConsole(t, service, { hasMap: false, locale: 'pl-PL' })
  await page.getByRole('button', { name: 'Zaloguj' }).waitFor()
  await page.route(/\/pl-[^/]*\.js$/, (route) => route.abort(), { times: 1 })
  await page.reload()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await page.getByRole('button', { name: 'Zaloguj' }).waitFor()
  await page.locator('input[type=email]').fill(login.email)
  await page.locator('input[type=password]').fill(login.password)
  await page.getByRole('button', { name: 'Zaloguj' }).click()
  await page.route('**/ConnectPhone-*.js', (route) => route.abort(), { times: 1 })
  await page.getByRole('button', { name: 'Połącz telefon' }).click()
  await page.getByRole('alert').getByRole('button', { name: 'Spróbuj ponownie' }).waitFor()
})

test('a day that is looked back at is that of the organization, though its time zone comes late', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login } = world
  await liveAtNoon(world)
  const { data: tracker } = await ask(service, 'POST', '/tracker', { token, body: { name: 'Van', kind: 'device' } })
  const { timeZone } = (await ask(service, 'GET', '/organization/settings', { token })).data
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  let from = ''
  page.on('request', (request) => {
    from = new URL(request.url()).searchParams.get('from') ?? from
  })
  await page.route('**/organization/settings', (route) => route.abort(), { times: 2 })
  // No such day is: today is shown.
  await page.evaluate(`location.hash = '#/back/${tracker._id}/2026-02-30'`)
  await page.reload()
  await page.getByText(`Times are those of ${timeZone}.`).waitFor()
  const hourThere = (): string =>
    new Date(from).toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' })
  await until('the day to begin at midnight there', async () => from !== '' && hourThere() === '00:00')
})

test("a geofence's group and visits that could not be loaded are there in the end", {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, token, login, groupId } = await openConsoleWorld(t)
  const circle = { name: 'Yard', geofenceGroupId: groupId, center: { lat: 52, lng: 21 }, radius: 300 }
  await ask(service, 'POST', '/geofence', { token, body: circle })
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await page.route('**/geofence-groups?*', (route) => route.abort(), { times: 1 })
  await page.route('**/reports/visits?*', (route) => route.abort(), { times: 1 })
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('list', { name: 'Geofences' }).getByText('Yard').click()
  const visits = page.getByRole('list', { name: 'Visits' })
  await visits.getByRole('button', { name: 'Try again' }).click()
  await visits.getByText('Nobody was inside in this time.').waitFor()
  await page.getByRole('group', { name: /for all of Yards/ }).waitFor()
  t.equal(await page.getByLabel('Group').locator('option').count(), 1)
})
