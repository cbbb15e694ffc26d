import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { sendFile } from '../support/import-calls.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'

const HERE = `${pathToFileURL(resolve('dist')).href}/`

/** Own files that a process and its threads loaded, from the folder of what is built. */
const loadedFiles = (folder: string): string[] => {
  const urls = readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] }
    return result.map(({ url }) => url)
  })
  return [...new Set(urls)].filter((url) => url.startsWith(HERE)).map((url) => url.slice(HERE.length))
}

test('the bundle serves the page, and its threads read files, answer questions and plan', {
  timeout: 600_000,
}, async (t) => {
  t.equal(spawnSync(process.execPath, ['scripts/build-bundle.mjs'], { stdio: 'inherit' }).status, 0)
  const folder = folderOf(t)
  const coverage = join(folder, 'coverage')
  const service = await startService(join(folder, 'data'), [], 0, undefined, undefined, { NODE_V8_COVERAGE: coverage })
  t.teardown(() => service.kill())
  for (const path of ['//', '//web/account.js', '/tiles/base/0/0/0'])
    t.equal((await call(service, 'GET', path)).status, 200, path)

  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const preview = await sendFile(service, token, 'a;b\n1;2\n', { type: 'datasource' }, { path: '/data/import/preview' })
  t.same(preview.json.data.columns, ['a', 'b'])

  const { key } = await make('/ingest-key', { name: 'Gateway', autoCreate: true })
  const points = [{ externalId: 'van', recordedAt: Date.now(), lat: 52, lng: 21 }]
  await ask(service, 'POST', '/location-history/bulk', { token: key, body: { points } })
  const history = async () => (await ask(service, 'GET', '/location-histories', { token })).data
  await until('the history', async () => (await history()).length === 1)

  const vehicle = await make('/vehicle', { name: 'Van', hubId })
  const flow = await make('/flow', { name: 'Round', steps: [{ id: 'one', name: 'One', components: [] }] })
  const task = await make('/task', { flowId: flow._id, hubId, title: 'Visit', lat: 52.21, lng: 21 })
  const asked = { hubId, taskIds: [task._id], vehicleIds: [vehicle._id], startAt: new Date().toISOString(), steps: 10 }
  const { _id } = await make('/routing', asked)
  const plan = async () => (await ask(service, 'GET', `/routing-result/${_id}`, { token })).data
  await until('the plan', async () => (await plan()).state === 'planned')

  t.equal(await service.stop(), 0)
  const files = loadedFiles(coverage)
  t.strictSame(
    files.filter((file) => !file.startsWith('bundle/')).sort(),
    ['src/bundle.js', 'src/main.js'],
    'all else comes from the bundle',
  )
  for (const file of ['cli-command-line.js', 'engines-lmdb-tables-worker.js', 'engines-chdb-worker.js'])
    t.ok(files.includes(`bundle/${file}`), file)
})
