import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import jsqr from 'jsqr'
import { test } from 'tap'
import { request } from 'undici'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, signUp, startService, until } from '../support/service.ts'

const run = promisify(execFile)
// The package has its function as the default of a default for the compiler, and as the default itself for Node.
const decode = ((jsqr as Json).default ?? jsqr) as typeof jsqr.default

const PIXELS = 4
const LIGHT: { [block: string]: [number, number] } = { '█': [255, 255], '▀': [255, 0], '▄': [0, 255], ' ': [0, 0] }

/** What a camera reads off a terminal with light letters on dark: each letter is two squares, one above the other. */
const scan = (output: string): string | undefined => {
  const lines = output.split('\n').filter((line) => /^[█▀▄ ]{20,}$/.test(line))
  const rows = lines.flatMap((line) => [0, 1].map((half) => [...line].map((block) => LIGHT[block][half])))
  const width = rows[0].length * PIXELS
  const height = rows.length * PIXELS
  const image = new Uint8ClampedArray(width * height * 4).fill(255)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      image.fill(rows[Math.floor(y / PIXELS)][Math.floor(x / PIXELS)], (y * width + x) * 4, (y * width + x) * 4 + 3)
  return decode(image, width, height)?.data
}

interface Set {
  /** What a phone sends once it has scanned the code. */
  send(scanned: string, tst: number): Promise<number>
}

const post = async (url: string, body?: object, headers: { [name: string]: string } = {}): Promise<number> =>
  (await request(url, { method: 'POST', headers, ...(body && { body: JSON.stringify(body) }) })).statusCode

const APPS: { [app: string]: Set['send'] } = {
  owntracks: (scanned, tst) => {
    const inline = new URL(scanned).searchParams.get('inline') ?? ''
    const { url, username, password } = JSON.parse(Buffer.from(inline, 'base64').toString())
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    return post(url, { _type: 'location', lat: 52, lon: 21, tst }, { authorization })
  },
  traccar: (scanned, tst) => {
    const { origin, pathname, searchParams } = new URL(scanned)
    return post(`${origin}${pathname}?id=${searchParams.get('id')}&lat=52&lon=21&timestamp=${tst}`)
  },
  overland: (scanned, tst) => {
    const { searchParams } = new URL(scanned)
    const properties = { timestamp: new Date(tst * 1000).toISOString(), device_id: searchParams.get('device_id') }
    const feature = { type: 'Feature', geometry: { type: 'Point', coordinates: [21, 52] }, properties }
    const headers = { authorization: `Bearer ${searchParams.get('token')}` }
    return post(searchParams.get('url') ?? '', { locations: [feature] }, headers)
  },
  osmand: (scanned, tst) =>
    post(['52', '21', `${tst}`, '3', '100', '0', '0'].reduce((url, value, i) => url.replace(`{${i}}`, value), scanned)),
  gpslogger: (scanned, tst) =>
    post(
      scanned
        .replace('%LAT', '52')
        .replace('%LON', '21')
        .replace('%TIMESTAMP', `${tst}`)
        .replace(/%[A-Z]+/g, '1'),
    ),
}

test('waymark connect prints a code that a camera reads and whose app sends points', {
  timeout: 300_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, email, password } = await signUp(service)
  const connect = async (...args: string[]): Promise<string> => {
    const login = ['--url', service.url, '--email', email, '--password', password]
    return (await run(process.execPath, ['dist/src/main.js', 'connect', ...login, ...args])).stdout
  }
  const tst = Math.floor(Date.now() / 1000) - 100
  for (const [app, send] of Object.entries(APPS)) {
    const printed = await connect('--app', app, '--name', `Phone with ${app}`)
    const scanned = scan(printed)
    if (scanned === undefined) throw new Error(`no camera reads the code of ${app}:\n${printed}`)
    t.ok(printed.includes(scanned), `${app}: the text of the code stands below it`)
    t.equal(await send(scanned, tst), 200, `${app}: the service takes what it sends`)
    const find = async (): Promise<Json[]> => {
      const path = `/trackers?name=${encodeURIComponent(`Phone with ${app}`)}`
      const [tracker] = (await ask(service, 'GET', path, { token })).data
      return (await ask(service, 'GET', `/location-histories?trackerId=${tracker._id}`, { token })).data
    }
    await until(`the point of ${app}`, async () => (await find()).length === 1)
    t.match((await find())[0], { lat: 52, lng: 21, recordedAt: new Date(tst * 1000).toISOString() })
  }

  const before = scan(await connect('--app', 'traccar', '--name', 'Van')) as string
  const after = scan(await connect('--app', 'traccar', '--tracker', 'Van')) as string
  t.equal(await APPS.traccar(before, tst), 401, 'a new code ends the one before')
  t.equal(await APPS.traccar(after, tst), 200)
  await t.rejects(connect('--app', 'pager'), /owntracks|allowed/)
  await t.rejects(connect('--app', 'osmand', '--tracker', 'Nobody'), /no tracker is called "Nobody"/)
})
