// Makes the picture of the page in README.md: `npm run build && node scripts/screenshot.mjs [docs/page.png]`.
// Starts a service of its own, sends it the shipped trace at sixty times its speed, and takes the page with Chromium.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium } from 'playwright-core'

const target = process.argv[2] ?? 'docs/page.png'
const folder = mkdtempSync(join(tmpdir(), 'waymark-picture-'))
const SPEED = 60
/** Of the trace's hour; what is left moves while the page is open. */
const BEFORE_PAGE_MS = 50_000
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

  const page = await browser.newPage({ viewport: { width: 1280, height: 760 } })
  await page.goto(url)
  await page.fill('input[name=email]', LOGIN.email)
  await page.fill('input[name=password]', LOGIN.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await replayed
  await page.getByRole('list', { name: 'Trackers' }).getByRole('button').nth(4).click()
  await page.locator('.drawer').getByText('points in the last hour').waitFor()
  await page.getByRole('list', { name: 'Events' }).locator('time').first().waitFor()
  await sleep(3_000) // the map has moved and is drawn
  await page.screenshot({ path: target })
} finally {
  await browser.close()
  service.kill('SIGTERM')
  await new Promise((done) => service.once('exit', done))
  rmSync(folder, { recursive: true, force: true })
}
