import { test, type Test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { ended, imported, sendFile } from '../../support/import-calls.ts'
import { freshlySeeded } from '../../support/random.ts'
import { allPages, ask, call, type Json, signUp, startService, until } from '../../support/service.ts'

const RECORDS = 4_000
const RECORD_KILLS = 5
const VISITS = 1_200
const VISIT_KILLS = 4
const UNDONE = 2_000
/** Of those so many were there before. */
const KNOWN = 300
const UNDO_KILLS = 4
/** Each of so many rows is refused. */
const BAD_EVERY = 97

const open = async (t: Test) => {
  const folder = folderOf(t)
  const world = { service: await startService(folder) }
  t.teardown(() => world.service.kill())
  const { token, hubId } = await signUp(world.service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(world.service, 'POST', path, { token, body })).data
  const get = (path: string): Promise<Json> => ask(world.service, 'GET', path, { token })
  const running = async (id: string): Promise<boolean> =>
    ['queued', 'processing'].includes((await get(`/import-monitoring/${id}`)).data.status)
  /** Kills the service when `count` reaches each of the numbers, as long as the job runs; answers how often. */
  const killAt = async (
    isGoingOn: () => Promise<boolean>,
    rows: readonly number[],
    count: () => Promise<number>,
  ): Promise<number> => {
    let kills = 0
    for (const row of rows) {
      let isRunning = true
      await until(`row ${row}`, async () => {
        if ((await count()) >= row) return true
        isRunning = await isGoingOn()
        return !isRunning
      })
      if (!isRunning) return kills
      await world.service.kill()
      kills++
      world.service = await startService(folder)
    }
    return kills
  }
  const report = async (id: string): Promise<string> =>
    (await call(world.service, 'GET', `/import-monitoring/${id}/report`, { token })).text
  return { world, token, hubId, make, get, running, killAt, report }
}

/** The first row is among them, so that even the fastest import is killed once. */
const drawn = (random: () => number, count: number, below: number): number[] =>
  [1, ...Array.from({ length: count - 1 }, () => 1 + Math.floor(random() * (below - 1)))].sort((a, b) => a - b)

/** What both imports have to agree on. */
const counts = ({ status, total, processed, succeeded, failed, errors }: Json): Json => ({
  status,
  total,
  processed,
  succeeded,
  failed,
  errors,
})

test('an import of records that is killed at random rows makes what an undisturbed one makes', {
  timeout: 900_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const { world, token, make, get, running, killAt, report } = await open(t)
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'price', type: 'number' },
  ]
  const typeOf = async (name: string): Promise<string> =>
    (await make('/data-type', { name, primaryKey: 'number', fields }))._id
  const [calm, stormy] = [await typeOf('Calm'), await typeOf('Stormy')]
  const lines = Array.from({ length: RECORDS }, (_, i) => `n${i},${i % BAD_EVERY === 0 ? 'much' : i}`)
  const csv = `number,price\n${lines.join('\n')}\n`
  const undisturbed = await imported(world.service, token, csv, { type: 'datasource', dataTypeId: calm })
  const sent = await sendFile(world.service, token, csv, { type: 'datasource', dataTypeId: stormy })
  const id = sent.json.data._id
  const made = async (): Promise<number> => (await get(`/data?dataTypeId=${stormy}&limit=1`)).total
  const kills = await killAt(() => running(id), drawn(random, RECORD_KILLS, RECORDS), made)
  t.comment(`killed ${kills} times`)
  t.ok(kills > 0, 'it was killed')
  const survived = await ended(world.service, token, id)
  t.same(counts(survived), counts(undisturbed))
  const valuesOf = async (dataTypeId: string): Promise<Json[]> =>
    (await allPages(world.service, `/data?dataTypeId=${dataTypeId}`, token)).map(({ values }: Json) => values)
  await until('the rows', async () => (await made()) === undisturbed.succeeded)
  t.same(await valuesOf(stormy), await valuesOf(calm), 'the same records in the same order')
  t.equal(await report(id), await report(undisturbed._id))
})

test('an import of visits that is killed at random rows gives each task one place', { timeout: 900_000 }, async (t) => {
  const random = freshlySeeded(t)
  const { world, token, hubId, make, get, running, killAt } = await open(t)
  const flow = await make('/flow', { name: 'Round trip', steps: [{ id: 's', name: 'S', components: [] }] })
  await make('/vehicle', { name: 'Van', hubId })
  const csvOf = (name: string): string => {
    const line = (_: unknown, i: number): string =>
      `${name}${i},${name}-${i},${name} ${i % 3},${i % BAD_EVERY === 0 ? 'Truck' : 'Van'},${VISITS - i}`
    return `title,externalId,route,vehicle,sequence\n${Array.from({ length: VISITS }, line).join('\n')}\n`
  }
  const fields = { type: 'visit', flowId: flow._id, hubId }
  const undisturbed = await imported(world.service, token, csvOf('calm'), fields)
  const sent = await sendFile(world.service, token, csvOf('storm'), fields)
  const id = sent.json.data._id
  const before = undisturbed.succeeded
  const made = async (): Promise<number> => (await get(`/tasks?flowId=${flow._id}&limit=1`)).total - before
  const kills = await killAt(() => running(id), drawn(random, VISIT_KILLS, VISITS), made)
  t.comment(`killed ${kills} times`)
  t.ok(kills > 0, 'it was killed')
  t.same(counts(await ended(world.service, token, id)), counts(undisturbed))
  await until('the tasks', async () => (await made()) === before)
  await until('the routes', async () => (await get('/routing-results')).total === 6)
  const tasks = new Map(
    (await allPages(world.service, `/tasks?flowId=${flow._id}`, token)).map((one: Json) => [one._id, one.title]),
  )
  const routesOf = async (name: string): Promise<Json> => {
    const results = (await get('/routing-results?sortBy=name')).data.filter((one: Json) => one.name.startsWith(name))
    return Promise.all(
      results.map(async ({ _id, state }: Json) => {
        const { routes } = (await get(`/routing-result/${_id}`)).data
        return [
          state,
          routes.map(({ visits }: Json) => visits.map((v: Json) => String(tasks.get(v.taskId)).slice(name.length))),
        ]
      }),
    )
  }
  t.same(await routesOf('storm'), await routesOf('calm'))
})

test('an undo that is killed at random rows takes each row back, and counts it once', {
  timeout: 900_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const { world, token, make, get, killAt } = await open(t)
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'price', type: 'number' },
  ]
  const dataTypeId = (await make('/data-type', { name: 'Undone', primaryKey: 'number', fields }))._id
  const csvOf = (rows: number, price: number): string =>
    `number,price\n${Array.from({ length: rows }, (_, i) => `n${i},${price}`).join('\n')}\n`
  const form = { type: 'datasource', dataTypeId, mode: 'upsert' }
  await imported(world.service, token, csvOf(KNOWN, 1), form)
  const { _id: id, succeeded } = await imported(world.service, token, csvOf(UNDONE, 2), form)
  t.equal(succeeded, UNDONE)
  const left = async (): Promise<number> => (await get(`/data?dataTypeId=${dataTypeId}&limit=1`)).total
  await until('all rows', async () => (await left()) === UNDONE)
  await ask(world.service, 'POST', `/import-monitoring/${id}/undo`, { token })
  const isGoingOn = async (): Promise<boolean> => (await get(`/import-monitoring/${id}`)).data.undoneAt === undefined
  const kills = await killAt(isGoingOn, drawn(random, UNDO_KILLS, UNDONE - KNOWN), async () => UNDONE - (await left()))
  t.comment(`killed ${kills} times`)
  t.ok(kills > 0, 'it was killed')
  await until('the end of the undo', async () => !(await isGoingOn()))
  t.same((await get(`/import-monitoring/${id}`)).data.undo, { undone: UNDONE, kept: 0, errors: [] })
  await until('the rows', async () => (await left()) === KNOWN)
  const rows = await allPages(world.service, `/data?dataTypeId=${dataTypeId}`, token)
  t.ok(
    rows.every(({ values }: Json) => values.price === 1),
    'what was there has its values back',
  )
})
