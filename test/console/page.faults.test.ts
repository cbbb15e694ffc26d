import type { Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { skip } from '../support/browser.ts'
import { mapOf, namesListed, openConsole, openConsoleWorld, openService, signIn } from '../support/console.ts'
import { freePort } from '../support/free-port.ts'
import { type Service, startService, until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const LOST = 'Connection lost'
const alarm = (page: Page) => page.getByRole('alert').filter({ hasText: LOST })
const stateOf = async (page: Page): Promise<string> =>
  ((await page.locator('header .state').textContent()) ?? '').trim()

/** A world with one bus at a latitude. */
const openBus = async (t: Test, service?: Service) => {
  const world = await openConsoleWorld(t, service)
  const send = async (lat: number, gateway = world.gateway): Promise<void> => {
    await gateway.send([{ externalId: 'bus', recordedAt: Date.now(), lat, lng: 21 }])
    await gateway.drained()
  }
  await send(52.25)
  return { ...world, send }
}

test('a service that is killed, upgraded and started again', { skip, timeout: 900_000 }, async (t) => {
  const flags = ['--stale-after', '5s']
  const { service, login } = await openBus(t, await openService(t, flags, await freePort()))
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await page.getByRole('list', { name: 'Trackers' }).getByText('bus', { exact: true }).click()
  const drawer = page.locator('.drawer')
  await drawer.getByText('52.25000').waitFor()
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('button', { name: '+ Circle' }).click()
  await page.getByLabel('Name').fill('Half a name')
  await service.kill()
  await alarm(page).waitFor()
  t.equal(await stateOf(page), 'offline')
  await page.getByLabel('Centre').fill('52.25, 21')
  await page.getByLabel('Centre').press('Tab')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor()
  t.equal(
    await page.getByRole('textbox', { name: 'Name' }).inputValue(),
    'Half a name',
    'nothing that was typed is lost',
  )
  await until('the position to age', async () => {
    await page.evaluate("location.hash = '#/map'")
    return (await page.getByRole('button', { name: /^stale 1$/ }).count()) === 1
  })
  await page.evaluate('history.back()')
  // The console that is served from now on has another name.
  await page.route(`${service.url}/`, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, body: (await answer.text()).replace(/main-\w+\.js/, 'main-NEWER.js') })
  })
  const again = await startService(service.data, flags, service.port)
  t.teardown(() => again.kill())
  await until('the page to be live', async () => (await stateOf(page)) === 'Live')
  await alarm(page).waitFor({ state: 'hidden' })
  await page.getByText('Waymark was updated.').waitFor()
  await page.unroute(`${service.url}/`)
  await page.evaluate("location.hash = '#/map'")
  await page.getByRole('button', { name: 'Reload' }).click()
  await until('the tracker after a reload', async () => (await namesListed(page)).join() === 'bus')
  // The service answers 503 until it is ready.
  t.same(
    complaints.filter((text) => !/net::ERR_|WebSocket connection| 503 /.test(text)),
    [],
    'nothing breaks',
  )
})

test('a network that falls silent, and one that comes back', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, send } = await openBus(t)
  const proxy = await TcpProxy.open(service.port)
  t.teardown(() => proxy.close())
  const { page } = await openConsole(t, { url: `http://127.0.0.1:${proxy.port}` }, { hasMap: false })
  await signIn(page, login)
  await page.getByRole('list', { name: 'Trackers' }).getByText('bus', { exact: true }).click()
  await page.locator('.drawer').getByText('52.25000').waitFor()
  proxy.silence()
  // Nobody closes the connection: that nothing is answered tells it.
  await alarm(page).waitFor()
  await send(52.27)
  t.equal(await page.locator('.drawer').getByText('52.25000').count(), 1, 'what is known stays')
  proxy.speak()
  await page.locator('.drawer').getByText('52.27000').waitFor()
  await until('the page to be live', async () => (await stateOf(page)) === 'Live')
  await alarm(page).waitFor({ state: 'hidden' })
})

test('a machine that slept for an hour', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, send } = await openBus(t)
  const proxy = await TcpProxy.open(service.port)
  t.teardown(() => proxy.close())
  const { page } = await openConsole(t, { url: `http://127.0.0.1:${proxy.port}` }, { hasMap: false })
  await page.clock.install()
  await page.reload()
  await signIn(page, login)
  await page.getByRole('list', { name: 'Trackers' }).getByText('bus', { exact: true }).click()
  await page.locator('.drawer').getByText('52.25000').waitFor()
  // Gateways forget a connection on which nothing goes, and tell nobody.
  proxy.silence()
  await send(52.28)
  proxy.speak()
  await page.clock.fastForward('01:00:00')
  await page.locator('.drawer').getByText('52.28000').waitFor()
  await until('the page to be live', async () => (await stateOf(page)) === 'Live')
  await alarm(page).waitFor({ state: 'hidden' })
})

test('a browser whose clock is two hours off', { skip, timeout: 900_000 }, async (t) => {
  const own = await openService(t, ['--stale-after', '60m', '--offline-after', '70m'])
  const { service, login } = await openBus(t, own)
  for (const hours of [2, -2]) {
    const { page, context, complaints } = await openConsole(t, service, { hasMap: false })
    await context.addInitScript(`{
      const off = ${hours * 3_600_000}
      const Real = Date
      globalThis.Date = class extends Real {
        constructor(...given) { given.length === 0 ? super(Real.now() + off) : super(...given) }
        static now() { return Real.now() + off }
      }
    }`)
    await page.reload()
    await signIn(page, login)
    await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
    // Ages are by the clock of the service.
    await page
      .locator('.age')
      .first()
      .filter({ hasText: /^\d+ (s|min) ago$/ })
      .waitFor()
    await page.getByRole('button', { name: /^(moving|stopped) 1$/ }).waitFor()
    await page.getByRole('list', { name: 'Trackers' }).getByText('bus', { exact: true }).click()
    await page.locator('.drawer').getByText('0 m in the last hour, points: 1').waitFor()
    t.same(complaints, [], `nothing breaks, ${hours} hours`)
  }
})

test('a browser that denies storage', { skip, timeout: 900_000 }, async (t) => {
  const { service, login } = await openBus(t)
  const { page, context, complaints } = await openConsole(t, service)
  await context.addInitScript(`
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB'])
      Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })`)
  await page.reload()
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByLabel('Colours').selectOption('Dark')
  await until('the dark page', async () => (await page.getAttribute('html', 'data-theme')) === 'dark')
  await page.reload()
  await until('the tracker after F5', async () => (await namesListed(page)).join() === 'bus')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  t.same(
    complaints.filter((text) => !/Failed to load resource: .* 401/.test(text)),
    [],
    'nothing breaks',
  )
})

test('a canvas that the browser takes away and gives back', { skip, timeout: 900_000 }, async (t) => {
  const { service, login, send } = await openBus(t)
  const { page, complaints } = await openConsole(t, service)
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
  const map = await mapOf(page)
  await until('it to be drawn', async () => (await map('view.trackers.drawn')) === 1)
  await page.evaluate(
    "globalThis.taken = document.querySelector('.ground canvas').getContext('webgl2').getExtension('WEBGL_lose_context'); taken.loseContext()",
  )
  await page.getByText('The browser has lost the drawing of the map').waitFor()
  await send(52.28)
  await page.getByRole('cell', { name: '52.28000' }).waitFor()
  await page.evaluate('taken.restoreContext()')
  await until('the words to go', async () => (await page.getByText('The browser has lost').count()) === 0)
  await send(52.29)
  const shown = (): Promise<boolean> =>
    map(
      "map.getLayer('trackers') !== undefined && view.trackers.drawn === 1 && map.queryRenderedFeatures({ layers: ['land'] }).length > 0",
    )
  await until('the map with the tracker', shown)
  t.same(
    complaints.filter((text) => !/CONTEXT_LOST|context lost|cannot be restored after WebGL/i.test(text)),
    [],
    'nothing breaks',
  )
})

test('a part of the page that cannot be loaded says so', { skip, timeout: 900_000 }, async (t) => {
  const { service, login } = await openBus(t)
  const { page } = await openConsole(t, service, { hasMap: false })
  await signIn(page, login)
  await page.route('**/assets/Fences-*', (route) => route.abort())
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('alert').filter({ hasText: 'This could not be loaded.' }).waitFor()
  await page.unroute('**/assets/Fences-*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('button', { name: '+ Circle' }).waitFor()
})
