import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { ended, sendFile } from '../../support/import-calls.ts'
import { ask, signUp, startService, until } from '../../support/service.ts'

const ROWS = 20_000

test('a sender who is disabled while the file is read gets no further row, and what was made can be undone', {
  timeout: 600_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId, password } = await signUp(service)
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const role = await make('/role', {
    name: 'Importer',
    permissions: ['import/data', 'view/data', 'edit/data', 'view/all-hubs'],
  })
  const email = 'importer@example.com'
  const user = await make('/user', { name: 'I', email, password, roleId: role._id, hubId: [hubId] })
  const { _id: dataTypeId } = await make('/data-type', {
    name: 'Rows',
    primaryKey: 'number',
    fields: [{ name: 'number', type: 'text' }],
  })
  const csv = `number\n${Array.from({ length: ROWS }, (_, n) => `n${n}`).join('\n')}\n`
  const sender = (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  const sent = await sendFile(service, sender, csv, { type: 'datasource', dataTypeId })
  const { _id: id } = sent.json.data
  const read = async () => (await ask(service, 'GET', `/import-monitoring/${id}`, { token })).data
  await until('the first rows', async () => (await read()).processed > 0)
  await ask(service, 'PATCH', `/user/${user._id}`, { token, body: { status: 'disabled' } })
  const { status, succeeded, failed, errors } = await ended(service, token, id)
  t.equal(status, 'completedWithErrors')
  t.ok(succeeded > 0 && failed > 0, `${succeeded} rows were made, ${failed} were refused`)
  t.equal(succeeded + failed, ROWS)
  t.match(errors[0], { code: 'forbidden', message: 'The user who sent the file may not import any more.' })
  await ask(service, 'POST', `/import-monitoring/${id}/undo`, { token })
  await until('the undo', async () => (await read()).undoneAt !== undefined)
  t.match((await read()).undo, { undone: succeeded, kept: 0 })
})
