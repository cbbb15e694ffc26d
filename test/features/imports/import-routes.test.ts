import { parse } from 'csv-parse/sync'
import tap, { test } from 'tap'
import { ended, imported, sendFile } from '../../support/import-calls.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ask, call, type Json, signUp, startService, until } from '../../support/service.ts'

const service = await startService(folderOf(tap))
tap.teardown(() => service.kill())

/** An organization of a test's own. */
const open = async () => {
  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const get = async (path: string): Promise<Json> => (await ask(service, 'GET', path, { token })).data
  const flow = await make('/flow', { name: 'Round trip', steps: [{ id: 's', name: 'S', components: [] }] })
  const vans = [await make('/vehicle', { name: 'Van 1', hubId }), await make('/vehicle', { name: 'Van 2' })]
  const rows = (csv: string, fields: { [name: string]: string }, name?: string): Promise<Json> =>
    imported(service, token, csv, fields, name === undefined ? undefined : { name })
  const task = async (externalId: string): Promise<Json> => (await get(`/tasks?externalId=${externalId}`))[0]
  /** Routes of the result of a name, as vehicles with externalIds. */
  const routes = async (name: string): Promise<Json> => {
    const [result] = await get(`/routing-results?name=${encodeURIComponent(name)}`)
    if (result === undefined) return undefined
    const found = await get(`/tasks?hubId=${hubId}&limit=500`)
    const ids = new Map(found.map((one: Json) => [one._id, one.externalId ?? one.title]))
    const { _id, source, state, version } = result
    const shown = (await get(`/routing-result/${_id}`)).routes.map(({ vehicleId, visits }: Json) => [
      vehicleId === vans[0]._id ? 'Van 1' : 'Van 2',
      visits.map(({ taskId }: Json) => ids.get(taskId)),
    ])
    return { _id, source, state, version, routes: shown }
  }
  const routesAre = async (name: string, routesWanted: Json): Promise<Json> => {
    await until(`the routes of ${name}`, async () => {
      return JSON.stringify((await routes(name))?.routes) === JSON.stringify(routesWanted)
    })
    return routes(name)
  }
  return { token, hubId, flow, vans, make, get, rows, task, routesAre, routes }
}

test('visits become tasks with places in routes, and rows of type route place what exists', {
  timeout: 600_000,
}, async (t) => {
  const { token, hubId, flow, make, get, rows, task, routesAre, routes } = await open()
  const visits = { type: 'visit', flowId: flow._id, hubId }

  const csv =
    'title,External ID,route,vehicle,sequence\n' +
    'A,a,Monday,van 1,2\nB,b,Monday,Van 1,1\nC,c,Monday,Van 2,\nD,d,Monday,Van 2,7\nE,e,,,\n' +
    'F,f,Monday,Truck,1\nG,g,Monday,,1\nH,h,,Van 1,\nI,i,Monday,Van 1,1.5\n'
  const first = await rows(csv, visits)
  await t.test('a visit is placed by route, vehicle and sequence', async (t) => {
    t.match(first, { type: 'visit', status: 'completedWithErrors', total: 9, succeeded: 5, failed: 4 })
    t.match(first.errors, [
      { row: 7, column: 'vehicle', message: 'names no vehicle that you see: "Truck"' },
      { row: 8, column: 'vehicle', message: 'is required beside route' },
      { row: 9, column: 'route', message: 'is required beside vehicle and sequence' },
      { row: 10, column: 'sequence', message: 'must be a whole number from 0' },
    ])
    const made = await routesAre('Monday', [
      ['Van 1', ['b', 'a']],
      ['Van 2', ['d', 'c']],
    ])
    t.match(made, { source: 'import', state: 'planned', version: 1 })
    t.equal(await task('f'), undefined, 'a row that is refused makes no task')
  })

  await t.test('rows of type route give tasks that exist their places, in a result that is there too', async (t) => {
    for (const externalId of ['x', 'y', 'z'])
      await make('/task', { flowId: flow._id, hubId, title: externalId, externalId })
    const y = await task('y')
    const row = await rows(
      `task,externalId,route,vehicle,sequence\n,x,Monday,Van 1,1\n${y._id},,Tuesday,Van 1,\n,a,Tuesday,Van 1,\n,nobody,Monday,Van 1,\n` +
        `,b,Monday,Van 2,1\n,x,Monday,Van 2,1\n`,
      {
        type: 'route',
        mapping: '{"task":"id","externalId":"externalId","route":"route","vehicle":"vehicle","sequence":"sequence"}',
      },
    )
    t.match(row, { type: 'route', status: 'completedWithErrors', succeeded: 2, failed: 4, hasReport: true })
    t.match(row.errors, [
      { row: 4, code: 'conflict', message: /is in the routing result/ },
      { row: 5, column: 'externalId', message: 'names no task that you see' },
      { row: 6, code: 'conflict', message: /has a place in Monday already/ },
      { row: 7, column: 'route', message: /the task of row 2 again/ },
    ])
    t.match(
      await routesAre('Monday', [
        ['Van 1', ['x', 'b', 'a']],
        ['Van 2', ['d', 'c']],
      ]),
      { version: 2 },
    )
    await routesAre('Tuesday', [['Van 1', ['y']]])
    const report = await call(service, 'GET', `/import-monitoring/${row._id}/report`, { token })
    t.same(
      (parse(report.text) as string[][]).map((line) => line.slice(0, 5)).slice(1),
      [
        ['', 'a'],
        ['', 'nobody'],
        ['', 'b'],
        ['', 'x'],
      ].map((two, i) => [
        ...two,
        ['Tuesday', 'Monday', 'Monday', 'Monday'][i],
        ['Van 1', 'Van 1', 'Van 2', 'Van 2'][i],
        ['', '', '1', '1'][i],
      ]),
    )
  })

  await t.test('an upsert moves places, and the last row of a task counts', async (t) => {
    const csv = 'externalId;route;vehicle;sequence\na;Monday;Van 2;1\na;Monday;Van 2;2\nz;Monday;Van 1;\n'
    t.match(await rows(csv, { type: 'route', mode: 'upsert' }), { status: 'completed', succeeded: 3, failed: 0 })
    await routesAre('Monday', [
      ['Van 1', ['x', 'b', 'z']],
      ['Van 2', ['d', 'a', 'c']],
    ])
  })

  await t.test('a route is the same however its accents are written', async (t) => {
    for (const externalId of ['k', 'l']) await make('/task', { flowId: flow._id, hubId, title: externalId, externalId })
    const csv = 'externalId,route,vehicle\nk,Cafe\u0301,Van 1\nl,Caf\u00e9,Van 1\n'
    t.match(await rows(csv, { type: 'route' }), { status: 'completed', succeeded: 2 })
    await routesAre('Caf\u00e9', [['Van 1', ['k', 'l']]])
  })

  await t.test('a dry run checks and writes nothing; a preview suggests the columns', async (t) => {
    await make('/task', { flowId: flow._id, hubId, title: 'w', externalId: 'w' })
    const csv = 'externalId,route,vehicle\nw,Sunday,Van 1\nw,Sunday,Van 1\nnobody,Sunday,Van 1\n'
    const row = await rows(csv, { type: 'route', dryRun: 'true' })
    t.match(row, { status: 'completedWithErrors', succeeded: 1, failed: 2, dryRun: true })
    t.equal(await routes('Sunday'), undefined)
    const path = '/data/import/preview'
    const preview = await sendFile(
      service,
      token,
      'Task id,ROUTE,vehicle id,Sequence\n1,2,3,4\n',
      { type: 'route' },
      { path },
    )
    t.same(preview.json.data.mapping, {
      'Task id': 'taskId',
      ROUTE: 'route',
      'vehicle id': 'vehicle',
      Sequence: 'sequence',
    })
  })

  await t.test('a preview without a flow suggests what every task has, and places for visits alone', async (t) => {
    const suggested = async (type: string): Promise<Json> => {
      const csv = 'Title,External id,route,load.kg,parcels\nA,a,Monday,3,1\n'
      return (await sendFile(service, token, csv, { type }, { path: '/data/import/preview' })).json.data.mapping
    }
    const task = { Title: 'title', 'External id': 'externalId', 'load.kg': 'load.kg' }
    t.same(await suggested('task'), task)
    t.same(await suggested('visit'), { ...task, route: 'route' })
  })

  await t.test('an undo takes routes back that nobody has touched', async (t) => {
    const row = await rows('title,externalId,route,vehicle\nP,p,Friday,Van 1\nQ,q,Friday,Van 1\n', visits)
    await routesAre('Friday', [['Van 1', ['p', 'q']]])
    const undo = async (id: string): Promise<Json> => {
      await ask(service, 'POST', `/import-monitoring/${id}/undo`, { token })
      await until('the undo', async () => (await get(`/import-monitoring/${id}`)).undoneAt !== undefined)
      return (await get(`/import-monitoring/${id}`)).undo
    }
    t.match(await undo(row._id), { undone: 2, kept: 0, errors: [] })
    await until('no route', async () => (await routes('Friday')) === undefined)
    t.equal(await task('p'), undefined)
    const route = await rows('externalId,route,vehicle\nw,Saturday,Van 1\ne,Saturday,Van 1\n', { type: 'route' })
    await routesAre('Saturday', [['Van 1', ['w', 'e']]])
    t.match(await undo(route._id), { undone: 2, kept: 0 })
    await until('no route', async () => (await routes('Saturday')) === undefined)
    t.match(await task('w'), { state: 'new' }, 'its tasks were there before')
    const kept = await undo(first._id)
    t.match(kept.errors, [{ row: 2, message: /was changed since/ }])
  })
})

test('routes need their permission', { timeout: 600_000 }, async (t) => {
  const { token, hubId, flow, make, get } = await open()
  const role = await make('/role', {
    name: 'Imports tasks',
    permissions: ['import/data', 'edit/task', 'view/task', 'dispatch/task'],
  })
  const [email, password] = [`r.${process.pid}@example.com`, 'Correct-horse-8-battery']
  await make('/user', { name: 'R', email, password, roleId: role._id, hubId: [hubId] })
  const { token: theirs } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const csv = 'title,externalId,route,vehicle\nP,p,Friday,Van 1\n'
  const visits = { type: 'visit', flowId: flow._id, hubId }
  const lacking = { permissions: ['edit/routing'] }
  t.match(await sendFile(service, theirs, csv, { type: 'route' }), { status: 403, json: lacking })
  t.match(await sendFile(service, theirs, csv, visits), { status: 403, json: lacking })
  const without = await sendFile(service, theirs, csv, { ...visits, mapping: '{"title":"title"}' })
  t.equal(without.status, 202)
  t.match(await ended(service, theirs, without.json.data._id), { succeeded: 1 })
  t.same(await get('/routing-results'), [])
  t.ok(token)
})
