import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { inHistory, liveAtNoon, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, until } from '../../support/service.ts'

const LONG = 'Donaudampfschiffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft Süd-Ost'
const HEBREW = 'משאית 7'

test('names that are long, or written from right to left, stay in their place', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, groupId, gateway } = world
  await liveAtNoon(world)
  const begunAt = Date.now() - 1_800_000
  const points = ['one', 'two'].flatMap((externalId) =>
    Array.from({ length: 60 }, (_, i) => ({
      externalId,
      recordedAt: begunAt + i * 10_000,
      lat: 52 + i / 1000,
      lng: 21,
    })),
  )
  await gateway.send(points)
  await gateway.drained()
  await inHistory(world, points.length)
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  for (const [i, name] of [LONG, HEBREW].entries()) {
    const circle = { name, geofenceGroupId: groupId, center: { lat: 52.03, lng: 21 }, radius: 500 }
    await ask(service, 'POST', '/geofence', { token, body: circle })
    await ask(service, 'PATCH', `/tracker/${trackers[i]._id}`, { token, body: { name } })
  }
  const { page } = await openConsole(t, service)
  await signIn(page, login)
  const overhang = () =>
    page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.side'))")

  await page.getByRole('link', { name: 'Geofences' }).click()
  const fences = page.getByRole('list', { name: 'Geofences' })
  await fences.getByText(LONG).waitFor()
  t.equal(await overhang(), 0, 'a long name is broken')
  await fences.getByText(HEBREW).click()
  await page.getByRole('button', { name: 'Try it' }).click()
  // Between marks of isolation: the date that follows would be drawn into the name.
  const told = `\u2068${HEBREW}\u2069 entered \u2068${HEBREW}\u2069`
  await page.getByText(told).waitFor()
  t.equal(await overhang(), 0, 'what was tried is broken, too')

  await page.evaluate(`location.hash = '#/back/${trackers.map(({ _id }: { _id: string }) => _id).join()}'`)
  await page.locator('.bar .words', { hasText: `\u2068${HEBREW}\u2069: ` }).waitFor()
  // A window at 200 %.
  await page.setViewportSize({ width: 640, height: 400 })
  await until('the map to have room', async () => {
    const box = await page.locator('.ground .map').boundingBox()
    return box !== null && box.height >= 100
  })
})

test('events name trackers of which the role shows no position, and never by their whole ids', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, groupId, gateway } = world
  const circle = { name: 'Yard', geofenceGroupId: groupId, center: { lat: 52, lng: 21 }, radius: 500 }
  await ask(service, 'POST', '/geofence', { token, body: circle })
  await gateway.send([{ externalId: 'one', recordedAt: Date.now(), lat: 52, lng: 21 }])
  await gateway.drained()
  await until('the crossing', async () => (await ask(service, 'GET', '/geofence-events', { token })).data.length === 1)
  const { data: trackers } = await ask(service, 'GET', '/trackers', { token })
  const [{ _id, name }] = trackers
  const permissions = ['view/geofence', 'view/all-hubs']
  for (const [shown, more] of [
    [name, ['view/tracker']],
    [`Tracker …${_id.slice(-4)}`, []],
  ] as const) {
    const body = { name: `Guard ${more.length}`, permissions: [...permissions, ...more] }
    const { data: role } = await ask(service, 'POST', '/role', { token, body })
    const login = { email: `guard${more.length}@example.com`, password: 'quite-long-words-42' }
    await ask(service, 'POST', '/user', { token, body: { ...login, name: 'Guard', roleId: role._id, hubId: [] } })
    const { page } = await openConsole(t, service)
    await signIn(page, login)
    await page.getByText(new RegExp(`${shown}\\W* entered \\W*Yard`)).waitFor()
  }
})
