import { type Test, test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, type Json, type Service, samplesMade, signUp, startService, until } from '../support/service.ts'

/** An organization with customers, a flow that takes them over, and two hubs. */
const openOffice = async (service: Service) => {
  const { token, hubId } = await signUp(service)
  await samplesMade(service, token)
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
  /** Reads until it is as expected: what automations write, reads show a moment later. */
  const seen = async (path: string, isExpected: (data: Json) => boolean): Promise<Json> => {
    let data: Json
    await until(`${path} to show it`, async () => isExpected((data = await send('GET', path))))
    return data
  }
  return { service, token, hubId, userId, yard, type, flow, record, send, automate, ended, seen }
}

const opened = async (t: Test) => {
  const folder = folderOf(t)
  const service = await startService(folder)
  t.teardown(() => service.kill())
  return openOffice(service)
}

test('automations create, assign, move and update tasks, and write records', { timeout: 900_000 }, async (t) => {
  const office = await opened(t)
  const { send, automate, ended, seen, flow, type, hubId, yard, userId, record } = office
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
  const task = await seen(`/task/${taskId}`, ({ components }) => components.number === 'new')
  t.match(task, {
    title: 'C-2',
    tags: ['made', '556'],
    hubId,
    state: 'assigned',
    assigneeIds: [userId],
    createdBy: { type: 'automation', id: create._id },
    components: { count: 7, note: '556', number: 'new', phone: '556' },
  })
  const history = await seen(`/task/${taskId}/history`, ({ length }) => length >= 3)
  t.same(
    history.map(({ type, actor }: Json) => [type, actor.type, actor.id]),
    [
      ['created', 'automation', create._id],
      ['assigned', 'automation', assign._id],
      ['changed', 'automation', update._id],
    ],
  )
  const audit = await seen(`/audit-log?actorId=${create._id}`, ({ length }) => length > 0)
  t.match(audit, [
    { actor: { type: 'automation', id: create._id }, action: 'create', noun: 'task', resourceId: taskId },
  ])

  await send('POST', `/task/${taskId}/start`, {})
  await send('POST', `/task/${taskId}/finish`, {})
  await ended(write._id, 1)
  await ended(follow._id, 1)
  t.match(
    (await seen(`/data/${made._id}`, ({ values }) => values.visits === 7)).values,
    { number: 'C-2', phone: '777', visits: 7 },
    'the record of that key is changed',
  )
  t.match(await seen('/tasks?q=Follow', ({ length }) => length > 0), [
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
  t.match((await seen(`/task/${other._id}`, ({ components }) => components.note !== undefined)).components, {
    note: '555',
    phone: '555',
  })
  await send('POST', `/task/${other._id}/start`, {})
  await send('POST', `/task/${other._id}/finish`, {})
  await ended(write._id, 2)
  const [fresh] = await seen(`/data?dataTypeId=${type._id}&values.number=C-9`, ({ length }) => length > 0)
  t.match(fresh?.values, { number: 'C-9', phone: '777' }, 'a record that no key has is made')
  await ended(create._id, 2)
  t.match(await seen('/tasks?q=C-9', ({ length }) => length > 1), { length: 2 }, 'and creates in its turn')

  const moved = await send('POST', '/task', { flowId: flow._id, title: 'To the yard', hubId, assigneeIds: [userId] })
  await ended(move._id, 1)
  t.match(await seen(`/task/${moved._id}`, ({ hubId: now }) => now === yard._id), {
    hubId: yard._id,
    state: 'assigned',
  })

  const planner = (await send('GET', '/roles?key=planner'))[0]
  const password = 'Correct-horse-8-battery'
  const of = async (hub: string): Promise<string> => {
    const email = `planner.${hub}@example.com`
    await send('POST', '/user', { name: 'P', email, password, roleId: planner._id, hubId: [hub] })
    return (await ask(office.service, 'POST', '/auth/login', { body: { email, password } })).token
  }
  const [here, there] = [await of(hubId), await of(yard._id)]
  const runsFor = async (token: string) =>
    (await ask(office.service, 'GET', `/automation-log?taskId=${taskId}`, { token })).data.length
  t.ok((await runsFor(here)) >= 3, 'the runs of a task, to whoever sees the task')
  t.equal(await runsFor(there), 0)
  const listed = async (token: string): Promise<Json[]> =>
    (await ask(office.service, 'GET', '/automation-log?limit=500', { token })).data
  const [ours, theirs] = [await listed(here), await listed(there)]
  const isAbout = (id: string) => (run: Json) => run.taskId === id
  t.equal(ours.filter(isAbout(taskId)).length, await runsFor(here), 'all of them without asking for the task')
  t.ok(
    ours.some(({ dataId }) => dataId !== undefined),
    'runs about records',
  )
  t.notOk(ours.some(isAbout(moved._id)), 'not those of a task that has left')
  t.notOk(
    theirs.some(({ taskId: id }) => id !== undefined && id !== moved._id),
    'nor of the tasks of other hubs',
  )
  const arrived = await ask(office.service, 'GET', `/automation-log?taskId=${moved._id}`, { token: there })
  t.match(arrived.data, [{ taskId: moved._id }], 'those of a task that came, by its id')
  const [{ _id: runId }] = await ended(assign._id, 1)
  const read = async (token: string) =>
    (await call(office.service, 'GET', `/automation-log/${runId}`, { token })).status
  t.same([await read(here), await read(there)], [200, 404])
})
