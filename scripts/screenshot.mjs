// Makes the pictures of the console in README.md and docs/console.md: `npm run build && node scripts/screenshot.mjs [folder]`.
// Starts a service of its own, sends it the shipped trace at sixty times its speed, and takes the pages with Chromium.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium } from 'playwright-core'

const target = process.argv[2] ?? 'docs'
const folder = mkdtempSync(join(tmpdir(), 'waymark-picture-'))
const SPEED = 60
/** Of the trace's hour; what is left moves while the page is open. */
const BEFORE_PAGE_MS = 50_000
/** The map has moved and is drawn. */
const DRAWN_MS = 3_000
const PATIENCE_MS = 180_000
const FLAGS = ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--disable-gpu']
const LOGIN = { email: 'ada@example.com', password: 'correct horse battery staple' }

const waymark = (...args) =>
  spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })

const service = waymark('start', '--port', '0', '--data', join(folder, 'data'))
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS })
try {
  const url = await new Promise((found) => {
    createInterface({ input: service.stdout }).on('line', (line) => {
      if (line.includes('"listening"')) found(JSON.parse(line).url)
    })
  })
  const post = async (path, body, token) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const answer = await (
      await fetch(`${url}/api/v3${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    ).json()
    if (!answer.status) throw new Error(`${path}: ${answer.message}`)
    return answer
  }
  const hub = { hubName: 'Depot', hubLat: 52.23, hubLng: 21.01 }
  const { token } = await post('/auth/signup', { name: 'Ada', ...LOGIN, organizationName: 'Warsaw buses', ...hub })
  const group = await post('/geofence-group', { name: 'City' }, token)
  const fences = JSON.parse(readFileSync('demo/fences.geojson', 'utf8'))
  await post(`/geofences/import?geofenceGroupId=${group.data._id}&nameProperty=name`, fences, token)
  const login = ['--url', url, '--email', LOGIN.email, '--password', LOGIN.password]
  const replay = waymark('replay', 'demo/fleet-warsaw.csv.gz', ...login, '--speed', String(SPEED))
  const replayed = new Promise((done) => replay.once('exit', done))
  await sleep(BEFORE_PAGE_MS)

  const signedIn = async (options) => {
    const page = await browser.newPage({ locale: 'en-GB', ...options })
    page.setDefaultTimeout(PATIENCE_MS)
    await page.goto(url)
    await page.fill('input[name=email]', LOGIN.email)
    await page.fill('input[name=password]', LOGIN.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    return page
  }
  const take = async (page, name) => {
    await sleep(DRAWN_MS)
    await page.screenshot({ path: join(target, name) })
  }
  const bus = (page) => page.getByRole('list', { name: 'Trackers' }).getByRole('button').nth(4)
  const page = await signedIn({ viewport: { width: 1280, height: 760 } })
  await replayed
  await bus(page).click()
  await page.locator('.drawer').getByText('points in the last hour').waitFor()
  await page.getByRole('list', { name: 'Events' }).locator('time').first().waitFor()
  await take(page, 'page.png')
  await page.getByRole('button', { name: 'Look back' }).click()
  await page.getByRole('list', { name: 'Trips and stops' }).waitFor()
  await take(page, 'console-back.png')
  await page.getByRole('link', { name: 'Geofences' }).click()
  await page.getByRole('list', { name: 'Geofences' }).getByRole('button', { name: 'Praga' }).click()
  await page.getByRole('button', { name: 'Try it' }).click()
  await page.getByText('Against the last seven days').waitFor()
  await take(page, 'console-geofence.png')
  const phone = await signedIn({ viewport: { width: 390, height: 760 }, hasTouch: true, colorScheme: 'dark' })
  await bus(phone).tap()
  await phone.locator('.drawer').getByText('points in the last hour').waitFor()
  await take(phone, 'console-phone.png')
} finally {
  await browser.close()
  service.kill('SIGTERM')
  await new Promise((done) => service.once('exit', done))
  rmSync(folder, { recursive: true, force: true })
}
