import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, samplesMade, signUp, startService, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

test('webhooks hear of tasks and records, each once, through a kill; hidden fields stay hidden', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  let service = await startService(folder)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  await samplesMade(service, token)
  const userId = (await ask(service, 'GET', '/user', { token })).data._id
  const send = async (method: string, path: string, body: Json): Promise<Json> =>
    (await ask(service, method, path, { token, body })).data
  const receiver = await openReceiver(t)
  const automate = async (event: string, fields: Json = {}): Promise<void> => {
    const body = {
      name: event,
      event,
      automationType: 'webhook',
      automationDetails: { url: receiver.url },
      rules: { fields },
    }
    const made = await send('POST', '/automation', body)
    receiver.secrets.set(made._id, made.automationDetails.secret)
  }
  const type = await send('POST', '/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'kind', type: 'text' },
      { name: 'debt', type: 'number' },
    ],
  })
  await automate('onDataSourceCreated', { 'record.values.kind': 'shop' })
  await automate('onTaskCreated', { 'task.title': { pattern: '^Deliver' } })
  await automate('onTaskAssigned')
  await automate('onTaskFinished', { 'old.task.state': 'inProgress', 'task.components.receiver': 'Ada' })
  const record = (number: string, kind: string) =>
    send('POST', '/data', { dataTypeId: type._id, values: { number, kind, debt: 5 } })
  await record('C-1', 'shop')
  await record('C-2', 'bank')
  const flow = (await ask(service, 'GET', '/flows?key=delivery', { token })).data[0]
  const one = await send('POST', '/task', { flowId: flow._id, title: 'Deliver one', hubId })
  await send('POST', '/task', { flowId: flow._id, title: 'Collect', hubId })
  await service.kill()
  service = await startService(folder)
  await send('POST', `/task/${one._id}/assign`, { assigneeIds: [userId] })
  await send('POST', `/task/${one._id}/start`, {})
  await send('POST', `/task/${one._id}/finish`, { components: { receiver: 'Ada' } })
  const heard = () => receiver.deliveries.map(({ body }) => body.type)
  await until('all to be told', async () => new Set(heard()).size === 4)
  t.same([...new Set(receiver.deliveries.map(({ id }) => id))].length, 4, 'one run each')
  t.same(receiver.bad, [])
  const told = (event: string): Json => receiver.deliveries.find(({ body }) => body.type === event)?.body.data
  t.match(told('onDataSourceCreated'), {
    record: { dataTypeId: type._id, values: { number: 'C-1', kind: 'shop', debt: 5 }, uniques: undefined },
    dataType: { name: 'Customers' },
  })
  t.match(told('onTaskCreated'), { task: { _id: one._id, title: 'Deliver one' }, before: null })
  t.match(told('onTaskAssigned'), { task: { assigneeIds: [userId] }, before: { state: 'new' } })
  t.match(told('onTaskFinished'), {
    task: { state: 'finished', components: { receiver: 'Ada' } },
    before: { state: 'inProgress' },
  })

  const role = (await ask(service, 'GET', '/roles?key=admin', { token })).data[0]
  const clerk = await send('POST', '/role', {
    name: 'Clerk',
    permissions: role.permissions,
    permissionDetails: [{ permissionName: 'view/data', dataTypeId: type._id, hiddenFields: ['debt'] }],
  })
  const password = 'Correct-horse-9-battery'
  const email = `clerk.${process.pid}@example.com`
  await send('POST', '/user', { name: 'C', email, password, roleId: clerk._id, hubId: [hubId] })
  const login = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const automations = (await ask(service, 'GET', '/automations?event=onDataSourceCreated', { token: login.token })).data
  await ask(service, 'PATCH', `/automation/${automations[0]._id}`, { token: login.token, body: { name: 'Mine now' } })
  const before = receiver.deliveries.length
  await record('C-3', 'shop')
  await until('the record to be told', async () => receiver.deliveries.length > before)
  t.same(
    receiver.deliveries.at(-1)?.body.data.record.values,
    { number: 'C-3', kind: 'shop' },
    'as the last editor may see it',
  )
})
