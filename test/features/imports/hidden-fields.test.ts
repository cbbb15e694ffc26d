import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { imported } from '../../support/import-calls.ts'
import { openSocket } from '../../support/open-socket.ts'
import { ask, call, type Json, signUp, startService } from '../../support/service.ts'

const SECRET = 'of nobody else'
const PERMISSIONS = ['import/data', 'view/data', 'edit/data', 'view/all-hubs']

test('what an import quotes of a field is for its sender, and for roles that hide nothing of the type', {
  timeout: 600_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, password } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const { _id: dataTypeId } = await make('/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'debt', type: 'number' },
    ],
  })
  const signedIn = async (name: string, permissionDetails: object[]): Promise<string> => {
    const email = `${name}@example.com`
    const { _id: roleId } = await make('/role', { name, permissions: PERMISSIONS, permissionDetails })
    await make('/user', { name, email, password, roleId, hubId: [] })
    return (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  }
  const restricted = await signedIn('restricted', [{ permissionName: 'view/data', dataTypeId, hiddenFields: ['debt'] }])
  const colleague = await signedIn('colleague', [])
  const socket = await openSocket(service, 'live', restricted)
  socket.send({ type: 'subscribe', id: 's', channels: ['job'] })
  await socket.heard(({ type }) => type === 'snapshot')

  const csv = `number,debt\n007,${SECRET}\n008,5\n`
  const { _id: id, errors } = await imported(service, token, csv, { type: 'datasource', dataTypeId })
  t.match(errors, [{ row: 2, column: 'debt', message: new RegExp(SECRET) }])
  const read = (path: string, as: string) => call(service, 'GET', path, { token: as })
  const paths = [`/import-monitoring/${id}`, '/import-monitoring', `/import-monitoring/${id}/report`]
  for (const as of [token, colleague])
    for (const path of paths) t.match(await read(path, as), { status: 200, text: new RegExp(SECRET) }, path)

  const shown = await read(paths[0], restricted)
  t.match(shown.json.data, { failed: 1, errors: [{ row: 2, column: 'debt', code: 'invalid', message: /hides/ }] })
  t.match(await read(paths[2], restricted), { status: 403, json: { code: 'forbidden', fields: ['debt'] } })
  await socket.heard(({ event }) => event?._id === id && event.status === 'completedWithErrors')
  for (const heard of [shown.text, (await read(paths[1], restricted)).text, JSON.stringify(socket.messages)])
    t.notMatch(heard, SECRET)
  socket.close()

  const own = await imported(service, restricted, 'number\n007\n007\n', { type: 'datasource', dataTypeId })
  t.match(own, { failed: 1, errors: [{ message: /taken/ }] }, 'what they sent themselves is told')
  t.match(await read(`/import-monitoring/${own._id}/report`, restricted), { status: 200 })
})
