import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import tap, { type Test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { CHROMIUM, FLAGS } from './browser.ts'
import { folderOf } from './folder-of.ts'
import { allRows, ask, type Json, type Service, signUp, startService, until } from './service.ts'

export const SOFTWARE_WEBGL = ['--use-angle=swiftshader', '--enable-unsafe-swiftshader']
const LIMIT_MS = 240_000
/** The map is drawn by the processor: a quarter of the pixels, and the same layout. */
const PIXEL_RATIO = 0.5
/** A browser without WebGL, as the page sees it. */
const DENY_WEBGL = `{
  const { getContext } = HTMLCanvasElement.prototype
  HTMLCanvasElement.prototype.getContext = function (type, ...more) {
    return /webgl/.test(type) ? null : getContext.call(this, type, ...more)
  }
}`
/** The view of the map, which the page leaves at its element. */
const VIEW = `document.querySelector('.ground .map')?.view`
/** Notes whether the page leaves a finger's drag to the browser: after such a swipe Chromium drops a tap that follows at once. */
export const NOTE_SWIPES =
  "addEventListener('touchmove', (event) => void (globalThis.isSwipe ||= !event.defaultPrevented))"

export interface ConsoleWorld {
  service: Service
  token: string
  login: { email: string; password: string }
  organizationId: string
  hubId: string
  gateway: IngestClient
  groupId: string
}

let shared: Promise<Service> | undefined

/** One service for the tests of a file. */
export const sharedService = (): Promise<Service> => (shared ??= openService(tap))

/** A service of the test's own: one with flags, or that is killed. */
export const openService = async (t: Test, flags: readonly string[] = [], port = 0): Promise<Service> => {
  const service = await startService(folderOf(t), flags, port)
  t.teardown(() => service.kill())
  return service
}

/** An organization of the test's own, in the shared service if no other is given, with a geofence group and a gateway that makes trackers. */
export const openConsoleWorld = async (t: Test, given?: Service): Promise<ConsoleWorld> => {
  const service = given ?? (await sharedService())
  const { token, email, password, organizationId, hubId } = await signUp(service)
  const group = await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Yards' } })
  const key = await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gateway', autoCreate: true } })
  const gateway = await IngestClient.connect(service.url, key.data.key)
  t.teardown(() => gateway.close())
  return { service, token, login: { email, password }, organizationId, hubId, gateway, groupId: group.data._id }
}

/** The day of owner and organization began half a day ago: what is looked back at lies on one day, whenever a test runs. */
export const liveAtNoon = async ({ service, token }: ConsoleWorld): Promise<void> => {
  const hours = 12 - new Date().getUTCHours()
  // Zones of this kind are named by how far UTC is ahead.
  const timeZone = `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`
  for (const path of ['/user', '/organization/settings'])
    await ask(service, 'PATCH', path, { token, body: { timeZone } })
}

/** Waits until the history has as many points, a moment after the last was acknowledged: pages read it once. */
export const inHistory = ({ service, token }: ConsoleWorld, points: number): Promise<void> =>
  until(
    `${points} points in the history`,
    async () => (await allRows(service, '/location-histories', token)).length === points,
  )

export interface OpenedConsole {
  page: Page
  context: BrowserContext
  /** Errors and warnings of the browser, breaches of the content policy among them. */
  complaints: string[]
}

export interface ConsoleOptions {
  width?: number
  height?: number
  colorScheme?: 'light' | 'dark'
  /** A screen that is touched. */
  hasTouch?: boolean
  /** Without a map, which costs more than all else on the page, a table of positions is in its place. */
  hasMap?: boolean
  /** Trackers glide and the map flies. */
  hasMotion?: boolean
  locale?: string
  timezoneId?: string
}

let browser: Promise<Browser> | undefined

/** One browser for the tests of a file, each of which has a context of its own. */
const sharedBrowser = (): Promise<Browser> => (browser ??= openBrowser())

const openBrowser = async (): Promise<Browser> => {
  const args = [...FLAGS, ...SOFTWARE_WEBGL]
  const opened = await chromium.launch({ executablePath: CHROMIUM, args, timeout: LIMIT_MS })
  tap.teardown(() => opened.close())
  return opened
}

/** What a page shows, on one line; empty if it no longer answers. */
const textOf = async (page: Page): Promise<string> =>
  JSON.stringify(
    await page
      .locator('body')
      .ariaSnapshot({ timeout: 10_000 })
      .catch(() => ''),
  )

/** A browser on the page of the service, nobody signed in. */
export const openConsole = async (
  t: Test,
  service: { url: string },
  { width = 1200, height = 700, hasMap = true, hasMotion = false, ...options }: ConsoleOptions = {},
): Promise<OpenedConsole> => {
  const context = await (await sharedBrowser()).newContext({
    ...{ viewport: { width, height }, deviceScaleFactor: PIXEL_RATIO, locale: 'en-GB', colorScheme: 'light' },
    reducedMotion: hasMotion ? 'no-preference' : 'reduce',
    ...options,
  })
  t.teardown(() => context.close())
  context.setDefaultTimeout(LIMIT_MS)
  if (!hasMap) await context.addInitScript(DENY_WEBGL)
  const page = await context.newPage()
  const complaints: string[] = []
  t.teardown(async () => {
    if (!t.passing()) console.error(`The page of "${t.name}": ${await textOf(page)}`, complaints)
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !/GPU|GL Driver|swiftshader/i.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(service.url)
  return { page, context, complaints }
}

export const signIn = async (page: Page, { email, password }: { email: string; password: string }): Promise<void> => {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('list', { name: 'Trackers' }).waitFor()
}

/** Waits until the map is drawn; then it answers what code about it says, where `view` is the view and `map` its map. */
export const mapOf = async (page: Page): Promise<(code: string) => Promise<Json>> => {
  await until('the map', () => page.evaluate(`${VIEW}?.map.loaded() ?? false`) as Promise<boolean>)
  return (code) => page.evaluate(`(() => { const view = ${VIEW}; const map = view.map; return ${code} })()`)
}

export const namesListed = (page: Page): Promise<string[]> =>
  page.getByRole('list', { name: 'Trackers' }).locator('.name').allTextContents()

/** A signed-in page with one tracker, a van, that has driven north for ten minutes along a meridian. */
export const openAfterDrive = async (
  t: Test,
  { service, login, gateway }: ConsoleWorld,
  { begunAt, lat, stepLat }: { begunAt: number; lat: number; stepLat: number },
): Promise<OpenedConsole & { map(code: string): Promise<Json> }> => {
  const points = Array.from({ length: 60 }, (_, i) => ({
    externalId: 'van',
    recordedAt: begunAt + i * 10_000,
    lat: lat + i * stepLat,
    lng: 21,
  }))
  await gateway.send(points)
  await gateway.drained()
  const opened = await openConsole(t, service)
  await signIn(opened.page, login)
  await until('the tracker', async () => (await namesListed(opened.page)).join() === 'van')
  return { ...opened, map: await mapOf(opened.page) }
}

/** Parts of the square world: a millimetre. */
const NEAR = 1e-10

/** Whether a place on the map, as parts of the square world, is this one. */
export const isAt = ([x, y]: [x: number, y: number], { lat, lng }: { lat: number; lng: number }): boolean => {
  const sine = Math.sin((lat * Math.PI) / 180)
  const atY = 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)
  return Math.abs(x - lng / 360 - 0.5) <= NEAR && Math.abs(y - atY) <= NEAR
}
