import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { sendFile } from '../../support/import-calls.ts'
import { ask, type Json, signUp, startService, until } from '../../support/service.ts'

const ROWS = 20_000

test('an undo that is asked for while a cancelled import ends takes back all that it has made', {
  timeout: 600_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const fields = [{ name: 'number', type: 'text' }]
  const body = { name: 'Rows', primaryKey: 'number', fields }
  const { _id: dataTypeId } = (await ask(service, 'POST', '/data-type', { token, body })).data
  const csv = `number\n${Array.from({ length: ROWS }, (_, n) => `n${n}`).join('\n')}\n`
  const { json } = await sendFile(service, token, csv, { type: 'datasource', dataTypeId })
  const path = `/import-monitoring/${json.data._id}`
  const read = async (): Promise<Json> => (await ask(service, 'GET', path, { token })).data
  await until('the first rows', async () => (await read()).processed > 0)
  await ask(service, 'DELETE', path, { token })
  await ask(service, 'POST', `${path}/undo`, { token })
  await until('the undo', async () => (await read()).undoneAt !== undefined)
  const { status, succeeded, undo } = await read()
  t.equal(status, 'cancelled')
  t.ok(succeeded > 0 && succeeded < ROWS, `${succeeded} rows were made`)
  t.match(undo, { undone: succeeded, kept: 0 })
  t.equal((await ask(service, 'GET', `/data?dataTypeId=${dataTypeId}&limit=1`, { token })).total, 0)
})
