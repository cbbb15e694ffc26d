import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { formOf, png } from '../support/pictures.ts'
import { ask, call, type Service, signUp, startService, until } from '../support/service.ts'

const filesIn = ({ data }: Service): string[] =>
  readdirSync(join(data, 'files'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, path, name }) => join(parentPath ?? path, name))

test('SIGKILL in the middle of uploads leaves nothing half; the repeat of one that was answered is that one', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  let service = await startService(folder)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const make = async (path: string, body: object) => (await ask(service, 'POST', path, { token, body })).data
  const steps = [{ id: 'one', name: 'One', components: [{ id: 'photo', type: 'photo' }] }]
  const flow = await make('/flow', { name: 'Round', steps })
  const task = await make('/task', { flowId: flow._id, title: 'T', hubId })
  const path = `/task/${task._id}/files`

  const socket = connect(service.port, '127.0.0.1')
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  const half = `--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${'x'.repeat(700_000)}`
  socket.write(
    `POST /api/v3${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 900000\r\n\r\n${half}`,
  )
  await until('half a file to be on its way', () => filesIn(service).length === 1)
  await service.kill()
  service = await startService(folder)
  t.same(filesIn(service), [], 'what was on its way is gone')

  const form = new FormData()
  form.append('componentId', 'photo')
  form.append('file', new File([png()], 'a.png'))
  const { body, headers } = await formOf(form)
  const sent = { token, body, headers: { ...headers, 'idempotency-key': 'photo-1' } }
  const first = await call(service, 'POST', path, sent)
  t.equal(first.status, 201)
  await service.kill()
  service = await startService(folder)
  const again = await call(service, 'POST', path, sent)
  t.same(again.json, first.json)
  t.equal(filesIn(service).length, 1)
  const { components } = (await ask(service, 'GET', `/task/${task._id}`, { token })).data
  t.same(components.photo, [first.json.data._id])
  t.equal((await call(service, 'GET', `/file/${first.json.data._id}`, { token })).status, 200)
})
