import { parse } from 'csv-parse/sync'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, signUp, startService } from '../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

test('exports of fields and components of every kind', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object, method = 'POST'): Promise<Json> =>
    (await ask(service, method, path, { token, body })).data
  const typeOf = (name: string, fields: object[]): Promise<Json> =>
    make('/data-type', { name, primaryKey: 'key', fields: [{ name: 'key', type: 'text' }, ...fields] })
  const exported = async (path: string, body: object): Promise<string> => {
    const { status, text } = await call(service, 'POST', path, { token, body })
    t.equal(status, 200, text)
    return text
  }
  const rowsOf = (text: string): Json[] => parse(text, { columns: true }) as Json[]

  await t.test('values that are older than the type of their field', async (t) => {
    const texts = ['seen', 'place'].map((name) => ({ name, type: 'text' }))
    const { _id: dataTypeId, fields } = await typeOf('Changed', texts)
    await make('/data', { dataTypeId, values: { key: '1', seen: 'on Monday', place: 'at home' } })
    const changed = { seen: 'datetime', place: 'coordinate' } as { [name: string]: string }
    const typed = fields.map((field: Json) => ({ ...field, type: changed[field.name] ?? field.type }))
    await make(`/data-type/${dataTypeId}`, { fields: typed }, 'PATCH')
    await make('/data', { dataTypeId, values: { key: '2', seen: 0, place: { lat: 52, lng: 21 } } })
    t.match(rowsOf(await exported('/data/export', { dataTypeId })), [
      { key: '1', seen: 'on Monday', place: 'at home' },
      { key: '2', seen: '1970-01-01T00:00:00.000Z', place: '52, 21' },
    ])
    const { features } = JSON.parse(await exported('/data/export', { dataTypeId, format: 'geojson' }))
    t.same(
      features.map(({ geometry }: Json) => geometry.coordinates),
      [[21, 52]],
    )
    t.notMatch(await exported('/data/export', { dataTypeId, format: 'gpx' }), 'undefined')
  })

  await t.test('a field that is named like a member of records', async (t) => {
    const named = ['version', 'createdAt'].map((name) => ({ name, type: 'text' }))
    const { _id: dataTypeId } = await typeOf('Named', named)
    await make('/data', { dataTypeId, values: { key: '1', version: 'second', createdAt: 'lately' } })
    t.match(rowsOf(await exported('/data/export', { dataTypeId })), [{ version: 'second', createdAt: 'lately' }])
    const [member] = rowsOf(await exported('/data/export', { dataTypeId, fields: ['version'] }))
    t.same(member, { version: '1' }, 'asked for by its bare name it is the member')
  })

  await t.test('places of rows whose columns leave their field out', async (t) => {
    const { _id: dataTypeId } = await typeOf('Placed', [
      { name: 'home', type: 'coordinate' },
      { name: 'work', type: 'coordinate' },
    ])
    const values = { key: '1', home: { lat: 52, lng: 180 }, work: { lat: 0, lng: 1 } }
    await make('/data', { dataTypeId, values })
    const features = async (fields: string[]): Promise<Json[]> =>
      JSON.parse(await exported('/data/export', { dataTypeId, format: 'geojson', fields })).features
    t.match(await features(['key']), [{ geometry: { coordinates: [180, 52] }, properties: { key: '1' } }])
    t.notHas((await features(['key']))[0].properties, 'home')
    t.match(await features(['work']), [{ geometry: { coordinates: [1, 0] }, properties: { work: values.work } }])
    const gpx = await exported('/data/export', { dataTypeId, format: 'gpx', fields: ['key'] })
    t.match(gpx, '<wpt lat="52" lon="-180">', 'the antimeridian, as GPX has it')
  })

  await t.test('components that are times, of a flow named in any case', async (t) => {
    await make('/organization/settings', { timeZone: 'Asia/Kolkata' }, 'PATCH')
    const steps = [{ id: 's', name: 'S', components: [{ id: 'seen', type: 'datetime' }] }]
    const flow = await make('/flow', { name: 'Timed', steps })
    const components = { seen: '2026-07-01T10:00:00Z' }
    await make('/task', { flowId: flow._id, hubId, title: 'One', components })
    const filter = { flowId: flow._id.toUpperCase() }
    const [row] = rowsOf(await exported('/tasks/export', { filter }))
    t.equal(row['components.seen'], '2026-07-01T15:30:00.000+05:30')
  })
})
