import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { inHistory, isAt, mapOf, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { ask, type Json, until } from '../../support/service.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'

const TRACKERS = 5
const STEPS = 12
/** A corridor with a corner: an area between its arms is not in it. */
const BEND = [
  [20.96, 52.01],
  [20.96, 52.03],
  [20.985, 52.03],
]
const IN_THE_CORNER = [20.968, 52.0235]
const HTML = '<img src=x onerror=alert(1)> & "bus"'

test('the console shows the fleet live', { skip, timeout: 900_000 }, async (t) => {
  const world = await openConsoleWorld(t)
  const { service, token, login, gateway, groupId } = world
  const fence = (body: Json) =>
    ask(service, 'POST', '/geofence', { token, body: { geofenceGroupId: groupId, ...body } })
  await fence({ name: 'North yard', center: { lat: 52.05, lng: 21 }, radius: 800 })
  await fence({ name: 'Bent road', width: 200, geometry: { type: 'LineString', coordinates: BEND } })
  const begun = Date.now() - 300_000
  let step = 0
  const move = async (): Promise<void> => {
    step++
    const points = Array.from({ length: TRACKERS }, (_, i) => ({
      externalId: i === 4 ? HTML : `bus-${i}`,
      recordedAt: begun + step * 10_000,
      lat: 52 + i * 0.002 + step * 0.004,
      lng: 20.99 + i * 0.005,
    }))
    await gateway.send(points)
    await gateway.drained()
  }
  await move()
  const { page, complaints } = await openConsole(t, service, { hasMotion: true })
  await signIn(page, login)
  await until('the trackers to be listed', async () => (await namesListed(page)).length === TRACKERS)
  t.ok((await namesListed(page)).includes(HTML), 'a name with HTML is text')
  const map = await mapOf(page)
  await until('all to be drawn', async () => (await map('view.trackers.drawn')) === TRACKERS)

  const layersAt = (place: number[]): Promise<string[]> =>
    map(
      `map.queryRenderedFeatures(map.project(${JSON.stringify(place)})).map(({ layer }) => layer.id).filter((id) => id.startsWith('fences'))`,
    )
  await map('void map.jumpTo({ center: [20.97, 52.02], zoom: 13 })')
  await until('the corridor to be drawn', async () => (await layersAt(BEND[1]!)).includes('fences-corridors'))
  await until('all of it', () => map('map.loaded()'))
  t.same(await layersAt(IN_THE_CORNER), [], 'what lies between the arms of a corridor is not filled')
  t.ok((await layersAt([20.9605, 52.02])).includes('fences-corridors'), 'it is as wide as it says: 34 m from the axis')
  t.notOk((await layersAt([20.9625, 52.02])).includes('fences-corridors'), 'and no wider: 171 m from the axis')

  while (step < STEPS) await move()
  await inHistory(world, TRACKERS * STEPS)
  const events = page.getByRole('list', { name: 'Events' })
  await until('a crossing', async () => /bus-\d entered North yard/.test((await events.textContent()) ?? ''))
  t.equal(await page.locator('img').count(), 0)

  await map('void map.jumpTo({ center: [21, 52.052], zoom: 14 })')
  await until('a bus in the middle', async () =>
    ((await map('view.trackers.places()')) as [number, number][]).some((place) =>
      isAt(place, { lat: 52.052, lng: 21 }),
    ),
  )
  const middle = (await page.getByRole('region', { name: 'Map of the fleet' }).first().boundingBox())!
  await page.mouse.click(middle.x + middle.width / 2, middle.y + middle.height / 2)
  await page.getByRole('heading', { name: 'bus-2' }).waitFor()
  t.match(page.url(), /#\/map\/[\w-]{36}$/, 'the address says which')
  await page.locator('.drawer').getByText('in the last hour, points: 12').waitFor()
  await page.getByRole('button', { name: 'Close' }).click()

  const search = page.getByRole('searchbox')
  await search.fill('BUS-3')
  await until('one tracker in the list', async () => (await namesListed(page)).join() === 'bus-3')
  await until('the same one on the map', async () => (await map('view.trackers.drawn')) === 1)
  await search.fill('nobody')
  await page.getByText('No tracker matches').waitFor()
  await page.getByRole('button', { name: 'Show all' }).click()
  await page.getByLabel('In geofence').selectOption({ label: 'North yard' })
  await until('those inside', async () => (await namesListed(page)).join().startsWith('bus-'))
  t.ok((await namesListed(page)).length < TRACKERS, 'and no others')
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})

test('the connection is lost', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  const send = async (lat: number): Promise<void> => {
    await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
    await gateway.drained()
  }
  await send(52.25)
  const proxy = await TcpProxy.open(service.port)
  t.teardown(() => proxy.close())
  const address = { url: `http://127.0.0.1:${proxy.port}` }
  const { page, context } = await openConsole(t, address, { hasMap: false })
  await signIn(page, login)
  const listed = page.getByRole('list', { name: 'Trackers' }).getByText('bus', { exact: true })
  await listed.click()
  await page.locator('.drawer').getByText('52.25000').waitFor()
  await proxy.close()
  await page.getByRole('alert').filter({ hasText: 'Connection lost' }).waitFor()
  t.ok(await listed.isVisible(), 'what is known stays')
  await context.setOffline(true)
  t.match(await page.locator('header [role=status]').textContent(), 'offline')
})

test('a browser without WebGL is told so, and lists positions', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  const send = async (lat: number): Promise<void> => {
    await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
    await gateway.drained()
  }
  await send(52.25)
  const { page, complaints } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await page.getByText('This browser offers no WebGL').waitFor()
  await page.getByRole('cell', { name: '52.25000' }).waitFor()
  await send(52.26)
  await page.getByRole('cell', { name: '52.26000' }).waitFor()
  await gateway.send([{ externalId: 'Łódź 7', recordedAt: Date.now(), lat: 51.77, lng: 19.46 }])
  const search = page.getByRole('searchbox')
  for (const [typed, found] of [
    ['lodz', 'Łódź 7'],
    ['US', 'bus'],
    ['ŁÓD', 'Łódź 7'],
    ['', 'bus,Łódź 7'],
  ] as const) {
    await search.fill(typed)
    await until(`"${typed}" to find ${found}`, async () => (await namesListed(page)).join() === found)
  }
  t.same(complaints, [], 'nothing breaks')
})
