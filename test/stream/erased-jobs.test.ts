import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { formOf } from '../support/pictures.ts'
import { ask, call, type Json, type Service, signUp, startService, until } from '../support/service.ts'

/** More than an export answers directly. */
const ROWS = 5_001

/** Files of exports and imports that the folder has. */
const jobFilesIn = (data: string): string[] =>
  ['exports', 'imports'].flatMap((kind) =>
    readdirSync(join(data, 'files', kind), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => `${kind}/${name}`),
  )

/** A job, once it has ended. */
const ended = async (service: Service, token: string, path: string): Promise<Json> => {
  let row: Json
  await until(`the end of ${path}`, async () => {
    row = (await ask(service, 'GET', path, { token })).data
    return !['queued', 'processing'].includes(row.status)
  })
  return row
}

test('exports and imports of an organization end with it, and so do their files', { timeout: 600_000 }, async (t) => {
  const data = folderOf(t)
  const service = await startService(data)
  t.teardown(() => service.kill())
  const jobsOf = async () => {
    const { token, password } = await signUp(service)
    const fields = [{ name: 'key', type: 'text' }]
    const type = await ask(service, 'POST', '/data-type', { token, body: { name: 'Poems', primaryKey: 'key', fields } })
    const form = new FormData()
    form.append('type', 'datasource')
    form.append('dataTypeId', type.data._id)
    const keys = Array.from({ length: ROWS }, (_, row) => `${row}\n`)
    form.append('file', new File([`key\n${keys.join('')}0\n`], 'poems.csv'))
    const imported = await ask(service, 'POST', '/data/import', { token, ...(await formOf(form)) })
    t.match(await ended(service, token, `/import-monitoring/${imported.data._id}`), { succeeded: ROWS, failed: 1 })
    const body = { dataTypeId: type.data._id, format: 'csv' }
    const exported = await ask(service, 'POST', '/data/export', { token, body })
    const { downloadPath } = await ended(service, token, `/tasks/export-log/${exported.data._id}`)
    return { token, password, download: () => call(service, 'GET', `/${downloadPath}`) }
  }
  const [gone, stays] = [await jobsOf(), await jobsOf()]
  t.equal((await gone.download()).status, 200)
  t.equal(jobFilesIn(data).length, 6, 'two exports, two imports with their reports')

  const body = { password: gone.password }
  const deletion = await call(service, 'DELETE', '/organization', { token: gone.token, body })
  // On a busy machine the audit log may be behind for longer than a request waits: the deletion goes on by itself.
  t.ok([200, 503].includes(deletion.status), deletion.text)
  await until('the download to end', async () => (await gone.download()).status === 404)
  await until('its files to go', () => jobFilesIn(data).length === 3)
  t.equal((await stays.download()).status, 200, 'those of others stay')
  t.equal((await ask(service, 'GET', '/import-monitoring', { token: stays.token })).total, 1)
})
