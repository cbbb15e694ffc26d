import { type Test, test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, type Service, signUp, startService, until } from '../support/service.ts'

/** An organization with customers, a flow that takes them over, and two hubs. */
const openOffice = async (service: Service) => {
  const { token, hubId } = await signUp(service)
  const send = async (method: string, path: string, body?: Json): Promise<Json> =>
    (await ask(service, method, path, { token, body })).data
  const userId = (await send('GET', '/user'))._id
  const yard = await send('POST', '/hub', { name: 'Yard', lat: 52.1, lng: 21.1 })
  const type = await send('POST', '/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'phone', type: 'text' },
      { name: 'visits', type: 'number' },
      { name: 'secret', type: 'text' },
    ],
  })
  const flow = await send('POST', '/flow', {
    name: 'Visit of a customer',
    steps: [
      {
        id: 'one',
        name: 'One',
        components: [
          { id: 'phone', type: 'text', label: 'Phone' },
          { id: 'number', type: 'text', label: 'Number' },
          { id: 'note', type: 'text', label: 'Note', readOnly: true },
          { id: 'count', type: 'number', label: 'Count', max: 100 },
        ],
      },
    ],
    dataSource: { dataTypeId: type._id, mapping: { phone: 'phone', number: 'number' } },
  })
  const record = await send('POST', '/data', { dataTypeId: type._id, values: { number: 'C-1', phone: '555' } })
  const automate = (body: Json): Promise<Json> => send('POST', '/automation', { name: body.event, ...body })
  const runsOf = async (automationId: string): Promise<Json[]> =>
    send('GET', `/automation-log?automationId=${automationId}&limit=500`)
  /** The runs of an automation, once there are so many and all have ended. */
  const ended = async (automationId: string, count: number): Promise<Json[]> => {
    await until(`${count} runs to end`, async () => {
      const runs = await runsOf(automationId)
      return runs.length >= count && runs.every(({ status }) => status !== 'pending')
    })
    return runsOf(automationId)
  }
  return { service, token, hubId, userId, yard, type, flow, record, send, automate, ended, runsOf }
}

const opened = async (t: Test) => {
  const folder = folderOf(t)
  const service = await startService(folder)
  t.teardown(() => service.kill())
  return openOffice(service)
}

test('automations create, assign, move and update tasks, and write records', { timeout: 300_000 }, async (t) => {
  const office = await opened(t)
  const { send, automate, ended, flow, type, hubId, yard, userId, record } = office
  const create = await automate({
    event: 'onDataSourceCreated',
    automationType: 'createTask',
    automationDetails: {
      flowId: flow._id,
      hubId,
      task: {
        title: { ref: 'record.values.number' },
        tags: ['made', { ref: 'record.values.phone' }, { ref: 'record.values.missing' }],
        components: { count: 7, note: { ref: 'dataType.name' } },
        dataSource: { dataTypeId: type._id, dataId: { ref: 'record._id' } },
      },
    },
  })
  const assign = await automate({
    event: 'onTaskCreated',
    automationType: 'assignTask',
    automationDetails: { assigneeIds: [userId] },
    rules: { fields: { 'task.title': 'C-2' } },
  })
  const update = await automate({
    event: 'onTaskAssigned',
    automationType: 'updateTask',
    automationDetails: { components: { note: { fromDataSource: 'phone' }, number: { ref: 'before.state' } } },
    rules: { fields: { 'task.flowId': flow._id } },
  })
  const write = await automate({
    event: 'onTaskFinished',
    automationType: 'createOrUpdateDataSource',
    automationDetails: {
      dataTypeId: type._id,
      values: { number: { ref: 'task.title' }, visits: { ref: 'task.components.count' }, phone: '777' },
    },
  })
  const follow = await automate({
    event: 'onTaskFinished',
    automationType: 'createAndAssignTask',
    automationDetails: {
      flowId: flow._id,
      task: { title: 'Follow up' },
      assigneeIds: { ref: 'task.assigneeIds' },
    },
    rules: { fields: { 'task.title': 'C-2' } },
  })
  const move = await automate({
    event: 'onTaskCreated',
    automationType: 'moveTask',
    automationDetails: { hubId: yard._id },
    rules: { fields: { 'task.title': 'To the yard' } },
  })

  const made = await send('POST', '/data', { dataTypeId: type._id, values: { number: 'C-2', phone: '556' } })
  const [run] = await ended(create._id, 1)
  t.match(run, { status: 'succeeded', dataId: made._id, attempts: [{ response: /taskId/ }] })
  await ended(assign._id, 1)
  await ended(update._id, 1)
  const taskId = JSON.parse(run.attempts[0].response).taskId
  const task = await send('GET', `/task/${taskId}`)
  t.match(task, {
    title: 'C-2',
    tags: ['made', '556'],
    hubId,
    state: 'assigned',
    assigneeIds: [userId],
    createdBy: { type: 'automation', id: create._id },
    components: { count: 7, note: '556', number: 'new', phone: '556' },
  })
  const history = await send('GET', `/task/${taskId}/history`)
  t.same(
    history.map(({ type, actor }: Json) => [type, actor.type, actor.id]),
    [
      ['created', 'automation', create._id],
      ['assigned', 'automation', assign._id],
      ['changed', 'automation', update._id],
    ],
  )
  const audit = await send('GET', `/audit-log?actorId=${create._id}`)
  t.match(audit, [
    { actor: { type: 'automation', id: create._id }, action: 'create', noun: 'task', resourceId: taskId },
  ])

  await send('POST', `/task/${taskId}/start`, {})
  await send('POST', `/task/${taskId}/finish`, {})
  await ended(write._id, 1)
  await ended(follow._id, 1)
  t.match(
    (await send('GET', `/data/${made._id}`)).values,
    { number: 'C-2', phone: '777', visits: 7 },
    'the record of that key is changed',
  )
  t.match(await send('GET', '/tasks?q=Follow'), [
    { title: 'Follow up', hubId, assigneeIds: [userId], state: 'assigned' },
  ])

  const other = await send('POST', '/task', {
    flowId: flow._id,
    title: 'C-9',
    hubId,
    assigneeIds: [userId],
    dataSource: { dataTypeId: type._id, dataId: record._id },
  })
  await ended(update._id, 3)
  t.match((await send('GET', `/task/${other._id}`)).components, { note: '555', phone: '555' })
  await send('POST', `/task/${other._id}/start`, {})
  await send('POST', `/task/${other._id}/finish`, {})
  await ended(write._id, 2)
  const [fresh] = await send('GET', `/data?dataTypeId=${type._id}&values.number=C-9`)
  t.match(fresh?.values, { number: 'C-9', phone: '777' }, 'a record that no key has is made')
  await ended(create._id, 2)
  t.match(await send('GET', '/tasks?q=C-9'), { length: 2 }, 'and creates in its turn')

  const moved = await send('POST', '/task', { flowId: flow._id, title: 'To the yard', hubId, assigneeIds: [userId] })
  await ended(move._id, 1)
  t.match(await send('GET', `/task/${moved._id}`), { hubId: yard._id, state: 'new' })
})
