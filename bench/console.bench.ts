import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CDPSession, chromium, type Page } from 'playwright-core'
import { ROW } from '../src/console/live/columns.ts'
import { CHROMIUM, FLAGS, skip } from '../test/support/browser.ts'
import { SOFTWARE_WEBGL, signIn } from '../test/support/console.ts'
import { signUp, startService } from '../test/support/service.ts'

/* Cost of updates of a moving fleet in the console's page: a worker that invents the fleet replaces the live one. */

const UPDATES = 30
const WARM_UP = 5
/** The smallest shows the cost of frames regardless of their content. */
const FLEETS = [10, 20_000]
const EVERY_MS = 1_000

/** Replaces the worker that holds the socket: a snapshot, then every tracker a step further each second. */
const workerOf = (trackers: number): string => `
  let step = 0
  const idOf = (i) => '00000000-0000-7000-8000-' + String(i).padStart(12, '0')
  const sweep = (isSnapshot) => {
    step++
    const now = Date.now()
    const indexes = Uint32Array.from({ length: ${trackers} }, (_, i) => i)
    const numbers = new Float64Array(${trackers * ROW})
    for (const i of indexes)
      numbers.set([20 + Math.floor(i / 141) / 75, 51.5 + (i % 141) / 100 + step * 0.0002, now, now, 12, i % 360, NaN, NaN], i * ${ROW})
    const met = isSnapshot ? Array.from(indexes, (index) => ({ index, trackerId: idOf(index), name: 'bus-' + index })) : []
    const columns = { met, indexes, numbers }
    postMessage({ type: 'positions', columns, gone: [], isSnapshot }, [indexes.buffer, numbers.buffer])
  }
  onmessage = ({ data }) => {
    if (data.type !== 'open') return
    sweep(true)
    postMessage({ type: 'connection', connection: 'live' })
    setInterval(() => sweep(false), ${EVERY_MS})
  }`

/** Notes each task above 50 ms, and the number of times the view was computed. */
const WATCH = `
  globalThis.longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] })`

const metric = async (cdp: CDPSession, name: string): Promise<number> => {
  const { metrics } = await cdp.send('Performance.getMetrics')
  return (metrics.find((one) => one.name === name)?.value ?? Number.NaN) * 1000
}

const measure = async (page: Page, url: string, trackers: number, login: { email: string; password: string }) => {
  const body = workerOf(trackers)
  await page.route('**/assets/worker-*.js', (route) => route.fulfill({ contentType: 'text/javascript', body }))
  await page.addInitScript(WATCH)
  await page.goto(url)
  await signIn(page, login)
  await page.getByText(`All ${trackers}`).waitFor()
  await page.waitForTimeout(WARM_UP * EVERY_MS)
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.evaluate('longTasks.length = 0')
  const [script, task] = [await metric(cdp, 'ScriptDuration'), await metric(cdp, 'TaskDuration')]
  await page.waitForTimeout(UPDATES * EVERY_MS)
  const longTasks = (await page.evaluate('longTasks')) as number[]
  return {
    trackers,
    'script an update, ms of CPU': round(((await metric(cdp, 'ScriptDuration')) - script) / UPDATES),
    'all tasks an update, ms of CPU': round(((await metric(cdp, 'TaskDuration')) - task) / UPDATES),
    'tasks above 50 ms': longTasks.length,
    'longest, ms': Math.round(Math.max(0, ...longTasks)),
    'heap, MB': round((await metric(cdp, 'JSHeapUsedSize')) / 1000 / 1e6),
  }
}

const round = (value: number): number => Math.round(value * 10) / 10

const main = async (): Promise<void> => {
  if (skip !== false) return console.log(skip)
  const data = mkdtempSync(join(tmpdir(), 'waymark-console-'))
  const service = await startService(data)
  const rows: object[] = []
  try {
    const login = await signUp(service)
    for (const trackers of FLEETS) {
      // As small as in the design's own figures: software draws the rest, which tells nothing about a graphics card.
      const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, ...SOFTWARE_WEBGL] })
      const page = await browser.newPage({ viewport: { width: 800, height: 300 }, locale: 'en-GB' })
      rows.push(await measure(page, service.url, trackers, login))
      await browser.close()
    }
  } finally {
    await service.kill()
    rmSync(data, { recursive: true, force: true })
  }
  console.table(rows)
}

await main()
