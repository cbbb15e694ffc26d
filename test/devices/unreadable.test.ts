import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, signUp, startService } from '../support/service.ts'

const CUT = '{"locations":[{"lat":52.1,'
const PATHS = ['overland', 'owntracks', 'traccar', 'osmand', 'ttn', 'chirpstack']

test('JSON that nobody can read is answered as taken by every format, and counts where its tracker is known', async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const made = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Van', externalId: 'van' } })).data
  const ingestKey = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'Gate' } })).data.key
  const refused = async (): Promise<unknown> =>
    (await ask(service, 'GET', `/tracker/${made._id}`, { token })).data.rejected
  const send = async (path: string, credential: string, body: string): Promise<number> => {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    return (await fetch(`${service.url}/in/${path}`, { method: 'POST', headers, body })).status
  }

  for (const path of PATHS) t.equal(await send(path, made.deviceKey, ''), 200, `an empty message to ${path}`)
  t.equal(await refused(), undefined, 'an empty message says nothing')
  for (const [i, path] of PATHS.entries()) {
    t.equal(await send(path, made.deviceKey, CUT), 200, path)
    t.match(await refused(), { count: i + 1, lastCode: 'invalid' }, path)
    t.equal(await send(path, ingestKey, CUT), 200, `${path}, and nobody says whose it is`)
  }
  for (const [i, path] of ['owntracks?u=jane&d=phone', 'traccar?id=van', 'osmand?deviceid=van'].entries()) {
    t.equal(await send(path, ingestKey, CUT), 200, path)
    t.match(await refused(), { count: PATHS.length + i }, 'a name beside the message says whose it is')
  }

  const location = (lat: number, tst: number) => JSON.stringify({ _type: 'location', lat, lon: 21, tst })
  const now = Math.floor(Date.now() / 1000)
  t.equal(await send('owntracks', ingestKey, location(91, now)), 200, 'out of range under every name')
  t.equal(await send('owntracks', ingestKey, location(52, 1_000)), 200, 'too old under every name')
  t.equal(await send('owntracks', ingestKey, location(52, now)), 503, 'what only lacks a name waits for one')
})
