import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import { test } from 'tap'
import ts from 'typescript'
import { folderOf } from '../support/folder-of.ts'
import { call, startService } from '../support/service.ts'

/** What somebody writes against the generated types; lines that expect an error are errors of the types. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, operations, paths, webhooks } from './waymark.d.ts'

type Schemas = components['schemas']
const seen: string[] = []

export const run = async (origin: string): Promise<string[]> => {
  const anonymous = createClient<paths>({ baseUrl: origin + '/api/v3' })
  const signedUp = await anonymous.POST('/auth/signup', {
    body: {
      name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple',
      organizationName: 'Green Couriers', hubName: 'West', hubLat: 52.23, hubLng: 20.98,
    },
  })
  if (signedUp.error !== undefined) throw new Error(signedUp.error.message)
  const session: Schemas['Session'] = signedUp.data
  const { token, organizations, data: owner } = session
  seen.push(owner.hubId[0], organizations[0].roleName)
  const client = createClient<paths>({ baseUrl: origin + '/api/v3', headers: { authorization: 'Bearer ' + token } })

  const made = await client.POST('/hub', { body: { name: 'East', lat: 52.24, lng: 21.08 } })
  const hub: Schemas['Hub'] | undefined = made.data?.data
  if (hub === undefined) throw new Error('no hub')
  seen.push(made.response.headers.get('etag') ?? 'no ETag')
  await client.POST('/tracker', { body: { name: 'Van 12', kind: 'vehicle', hubId: hub._id } })
  const amended = await client.PATCH('/hub/{hubId}', {
    params: { path: { hubId: hub._id }, header: { 'If-Match': '"1"' } },
    body: { name: 'Far East' },
  })
  seen.push(String(amended.data?.data.version.toFixed()))

  const page = await client.GET('/trackers', { params: { query: { limit: 10, sortBy: 'name', hubId: hub._id } } })
  for (const { name, kind, status, lastSeenAt } of page.data?.data ?? []) seen.push([name, kind, status, lastSeenAt ?? 'never'].join())
  seen.push(String(page.data?.total.toFixed()), page.data?.nextCursor ?? 'last page')

  const wrong = await client.POST('/hub', { body: { name: 'North', lat: 152, lng: 21.08 } })
  const error: Schemas['Error'] | undefined = wrong.error
  if (error?.code === 'invalid') seen.push(...(error.errors ?? []).map(({ path, message }) => path + ' ' + message))

  const key = await client.POST('/ingest-key', { body: { name: 'Gateway', autoCreate: true } })
  const gateway = createClient<paths>({ baseUrl: origin + '/api/v3', headers: { authorization: 'Bearer ' + key.data?.data.key } })
  const point: Schemas['Point'] = { externalId: 'van-13', recordedAt: Date.now(), lat: 52.2, lng: 21, attributes: { door: 'open' } }
  const stored = await gateway.POST('/location-history/bulk', { body: { points: [point] } })
  seen.push(String(stored.data?.data.accepted.toFixed()))

  const history = await client.GET('/location-histories', { params: { query: { order: 'asc', simplify: 5 } } })
  const rows: Schemas['PointRow'][] =
    typeof history.data === 'object' && 'data' in history.data ? history.data.data : []
  for (const { lat, speed } of rows) seen.push((lat + (speed ?? 0)).toFixed())
  const csv = await client.GET('/location-histories', { params: { query: { format: 'csv' } }, parseAs: 'text' })
  seen.push(String(csv.response.headers.get('content-type')))
  type Formats = keyof operations['listLocationHistories']['responses'][200]['content']
  const gpx: Formats = 'application/gpx+xml'

  const group = await client.POST('/geofence-group', { body: { name: 'Depots' } })
  const fence = await client.POST('/geofence', {
    body: {
      name: 'Depot', geofenceGroupId: group.data?.data._id ?? '', center: { lat: 52.2, lng: 21 }, radius: 300,
      attributes: { gate: 4, open: { from: '07:30' } },
    },
  })
  seen.push(String(fence.data?.data.attributes?.gate))
  const hook = await client.POST('/automation', {
    body: {
      name: 'Tell the yard', event: 'onGeofenceEntry', automationType: 'webhook',
      automationDetails: { url: 'https://example.com/hook' }, rules: { fields: { geofenceGroupId: group.data?.data._id } },
    },
  })
  seen.push(typeof hook.data?.data.automationDetails?.secret)
  const body = {} as webhooks['onGeofenceEntry']['post']['requestBody']['content']['application/json']
  const entered = (): string => body.type + body.data.tracker._id + (body.data.point?.lat ?? 0).toFixed()
  const settings = await client.PATCH('/organization/settings', { body: { language: 'pl', configuration: { map: 'dark' } } })
  seen.push(String(settings.data?.data.configuration.map))
  const gone = await client.DELETE('/hub/{hubId}', { params: { path: { hubId: hub._id } } })
  seen.push(gone.error?.code ?? 'deleted')

  // @ts-expect-error a name is required
  void (() => client.POST('/hub', { body: { lat: 1, lng: 2 } }))
  // @ts-expect-error a hub has no colour
  void ((): Schemas['NewHub'] => ({ name: 'x', lat: 1, lng: 2, colour: 'red' }))
  // @ts-expect-error there is no such path
  void (() => client.GET('/hubses'))
  // @ts-expect-error there is no such format
  void (() => client.GET('/location-histories', { params: { query: { format: 'shp' } } }))
  // @ts-expect-error a position has no colour
  void ((position: Schemas['Position']) => position.colour)
  void [gpx, entered]
  return seen
}
`

test('a client that is generated from the document compiles, and does what it says', {
  timeout: 900_000,
}, async (t) => {
  // Within the project, whose packages the program imports.
  const folder = mkdtempSync(resolve('.tap', 'client-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const document = (await call(service, 'GET', '//openapi.json')).text
  const types = astToString(await openapiTS(document))
  t.same(types.match(/(?<!\$defs = )Record<string, never>/g), null, 'no object is empty')
  writeFileSync(join(folder, 'waymark.d.ts'), types)
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'program.ts'), PROGRAM.trimStart())
  const program = ts.createProgram([join(folder, 'program.ts')], {
    strict: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
  })
  const faults = ts.getPreEmitDiagnostics(program).map(({ messageText, file, start }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1
    return `${file?.fileName.split('/').at(-1)}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n').slice(0, 400)}`
  })
  t.same(faults, [], 'the program compiles')
  program.emit()
  const { run } = await import(pathToFileURL(join(folder, 'program.js')).href)
  const seen: string[] = await run(service.url)
  t.match(seen[0], /^[0-9a-f-]{36}$/, 'the hub of the owner')
  const rest = seen.slice(1)
  t.same(
    rest.filter((text) => !/^\d\d$/.test(text)),
    [
      'owner',
      '"1"',
      '2',
      'Van 12,vehicle,offline,never',
      '1',
      'last page',
      '/lat must be <= 90',
      '1',
      'text/csv; charset=utf-8',
      '4',
      'string',
      'dark',
      'conflict',
    ],
  )
})
