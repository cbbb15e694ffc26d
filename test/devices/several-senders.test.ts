import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, signUp, startService, until } from '../support/service.ts'

test('one request brings points of several devices: each goes to the tracker of its name', async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const body = { name: 'Gateway', autoCreate: true }
  const { key } = (await ask(service, 'POST', '/ingest-key', { token, body })).data
  const { deviceKey, _id } = (await ask(service, 'POST', '/tracker', { token, body: { name: 'Own', kind: 'device' } }))
    .data
  const from = Date.now() - 60_000
  const send = async (path: string, credential: string, message: unknown) => {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    return (await fetch(`${service.url}/in/${path}`, { method: 'POST', headers, body: JSON.stringify(message) })).status
  }
  const pointsOf = async (query: string): Promise<Json[]> =>
    (await ask(service, 'GET', `/location-histories?order=asc&${query}`, { token })).data
  const trackerOf = async (name: string): Promise<string | undefined> =>
    (await ask(service, 'GET', `/trackers?externalId=${name}`, { token })).data[0]?._id
  const holds = (name: string, count: number) =>
    until(`${count} points of ${name}`, async () => {
      const trackerId = await trackerOf(name)
      return trackerId !== undefined && (await pointsOf(`trackerId=${trackerId}`)).length === count
    })

  const feature = (device_id: string, second: number) => ({
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [21, 52] },
    properties: { timestamp: new Date(from + second * 1000).toISOString(), device_id },
  })
  const locations = [feature('old', 0), feature('new', 1), feature('old', 2)]
  t.equal(await send('overland', key, { locations }), 200)
  await holds('old', 2)
  await holds('new', 1)

  const form = (id: string, second: number) => ({ id, lat: 52, lon: 21, timestamp: from + second * 1000 })
  t.equal(await send('traccar', key, [form('van', 0), form('bus', 1), form('van', 2)]), 200)
  t.equal(await send('osmand', key, form('bus', 3)), 200)
  await holds('van', 2)
  await holds('bus', 2)

  const mixed = [feature('new', 3), feature('old', 2), feature('new', 1)]
  t.equal(await send('overland', deviceKey, { locations: mixed }), 200)
  await until('those of a key of its own', async () => (await pointsOf(`trackerId=${_id}`)).length === 3)
  t.equal((await ask(service, 'GET', '/trackers', { token })).total, 5, 'whose names make no tracker')
})
