import { test } from 'tap'
import { CHAIN_DEPTH_MAX } from '../../../src/features/automations/chain.ts'
import { RECORDS } from '../../../src/features/data/views.ts'
import { dyingLog } from '../../support/dying-log.ts'
import { PASSWORD } from '../../support/open-identity.ts'
import { until } from '../../support/service.ts'
import { type Json, openOffice } from './open-office.ts'

const NOTHING = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f'

test('details that cannot be done are refused with the path of what is wrong', async (t) => {
  const { owner, flow, type, hubId, userId } = await openOffice(t)
  const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)])
  const task = { flowId: flow._id, hubId, task: { title: 'x' } }
  const rules = { fields: { 'task.flowId': flow._id } }
  const refused: [string, string, Json, string, Json?][] = [
    ['createTask', 'onTaskCreated', undefined, '/automationDetails'],
    ['createTask', 'onTaskCreated', {}, '/automationDetails/flowId'],
    ['createTask', 'onTaskCreated', { ...task, flow: 1 }, '/automationDetails/flow'],
    ['createTask', 'onTaskCreated', { ...task, flowId: NOTHING }, '/automationDetails/flowId'],
    ['createTask', 'onTaskCreated', { ...task, flowId: { ref: 'task.flowId' } }, '/automationDetails/flowId'],
    ['createTask', 'onTaskCreated', { ...task, hubId: NOTHING }, '/automationDetails/hubId'],
    ['createTask', 'onTaskCreated', { ...task, hubId: 5 }, '/automationDetails/hubId'],
    ['createTask', 'onDataSourceCreated', { flowId: flow._id, task: { title: 'x' } }, '/automationDetails/hubId'],
    ['createTask', 'onTaskCreated', { ...task, task: {} }, '/automationDetails/task/title'],
    ['createTask', 'onTaskCreated', { ...task, task: { title: 5 } }, '/automationDetails/task/title'],
    ['createTask', 'onTaskCreated', { ...task, task: { title: 'x', titel: 'x' } }, '/automationDetails/task/titel'],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', priority: 11 } },
      '/automationDetails/task/priority',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', assigneeIds: [userId] } },
      '/automationDetails/task/assigneeIds',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: { ref: 'task.titel' } } },
      '/automationDetails/task/title/ref',
    ],
    ['createTask', 'onTaskCreated', { ...task, task: { title: { ref: '' } } }, '/automationDetails/task/title/ref'],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: { ref: 'old.task.title' } } },
      '/automationDetails/task/title/ref',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: { ref: 'task.components.__proto__' } } },
      '/automationDetails/task/title/ref',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', tags: nested(30) } },
      '/automationDetails/task/tags',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', components: { constructor: 1 } } },
      '/automationDetails/task/components/constructor',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', components: JSON.parse('{"__proto__": 1}') } },
      '/automationDetails/task/components/__proto__',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', components: { count: 101 } } },
      '/automationDetails/task/components/count',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', components: { customer: NOTHING } } },
      '/automationDetails/task/components/customer',
    ],
    [
      'createTask',
      'onTaskCreated',
      { ...task, task: { title: 'x', components: { photos: [NOTHING] } } },
      '/automationDetails/task/components/photos',
    ],
    ['createAndAssignTask', 'onTaskCreated', task, '/automationDetails/assigneeIds'],
    ['createAndAssignTask', 'onTaskCreated', { ...task, assigneeIds: [] }, '/automationDetails/assigneeIds'],
    ['createAndAssignTask', 'onTaskCreated', { ...task, assigneeIds: [NOTHING] }, '/automationDetails/assigneeIds/0'],
    ['createAndAssignTask', 'onTaskCreated', { ...task, teamId: NOTHING }, '/automationDetails/teamId'],
    ['assignTask', 'onTaskCreated', {}, '/automationDetails/assigneeIds'],
    ['assignTask', 'onTaskCreated', { assigneeIds: 'x' }, '/automationDetails/assigneeIds'],
    ['assignTask', 'onDataSourceCreated', { assigneeIds: [userId] }, '/automationType'],
    ['moveTask', 'onTaskCreated', {}, '/automationDetails/hubId'],
    ['moveTask', 'onTaskCreated', { hubId: { ref: 'task.nothing' } }, '/automationDetails/hubId/ref'],
    ['moveTask', 'onDataSourceCreated', { hubId }, '/automationType'],
    ['updateTask', 'onTaskCreated', { components: {} }, '/automationDetails/components'],
    ['updateTask', 'onTaskCreated', { components: [] }, '/automationDetails/components'],
    ['updateTask', 'onTaskCreated', { components: { nope: 1 } }, '/automationDetails/components/nope', rules],
    ['updateTask', 'onTaskCreated', { components: { '1 x': 1 } }, '/automationDetails/components/1 x'],
    [
      'updateTask',
      'onTaskCreated',
      { components: { note: { fromDataSource: 'phone' } } },
      '/automationDetails/components/note/fromDataSource',
    ],
    [
      'updateTask',
      'onTaskCreated',
      { components: { note: { fromDataSource: 'visits' } } },
      '/automationDetails/components/note/fromDataSource',
      rules,
    ],
    [
      'updateTask',
      'onTaskCreated',
      { components: { note: { fromDataSource: 'number' } } },
      '/automationDetails/components/note/fromDataSource',
      rules,
    ],
    ['createOrUpdateDataSource', 'onTaskCreated', { dataTypeId: NOTHING, values: {} }, '/automationDetails/dataTypeId'],
    [
      'createOrUpdateDataSource',
      'onTaskCreated',
      { dataTypeId: type._id, values: {} },
      '/automationDetails/values/number',
    ],
    [
      'createOrUpdateDataSource',
      'onTaskCreated',
      { dataTypeId: type._id, values: { number: 'x', nope: 1 } },
      '/automationDetails/values/nope',
    ],
    [
      'createOrUpdateDataSource',
      'onTaskCreated',
      { dataTypeId: type._id, values: { number: 'x', visits: 101 } },
      '/automationDetails/values/visits',
    ],
  ]
  for (const [automationType, event, automationDetails, path, more] of refused) {
    const body = { name: 'x', event, automationType, automationDetails, rules: more }
    const { status, body: answer } = await owner.call('POST', '/automation', body)
    t.match(
      [status, answer.errors?.[0]?.path],
      [400, path],
      `${automationType} ${JSON.stringify(automationDetails ?? null).slice(0, 100)}`,
    )
  }
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  const body = JSON.parse(`{"components":{"note":${deep}}}`)
  const answer = await owner.call('POST', '/automation', {
    ...{ name: 'x', event: 'onTaskCreated', automationType: 'updateTask', automationDetails: body },
  })
  t.equal(answer.status, 400)
})

test('an automation does what its editor may do: looked at when it is written and at each attempt', async (t) => {
  const office = await openOffice(t)
  const { ask, login, hubId, flow, automate, begin, ended, known } = office
  const yard = await ask('POST', '/hub', { name: 'Yard', lat: 1, lng: 1 })
  const permissions = [
    'view/automation',
    'edit/automation',
    'view/task',
    'edit/task',
    'dispatch/task',
    'view/data',
    'view/hub',
  ]
  const role = await ask('POST', '/role', { name: 'Clerk', permissions })
  const email = 'clerk@example.com'
  await ask('POST', '/user', { name: 'C', email, password: PASSWORD, roleId: role._id, hubId: [hubId] })
  const clerk = await login(email)
  const type = await ask('POST', '/data-type', { name: 'T', primaryKey: 'n', fields: [{ name: 'n', type: 'text' }] })
  const write = {
    name: 'w',
    event: 'onTaskCreated',
    automationType: 'createOrUpdateDataSource',
    automationDetails: { dataTypeId: type._id, values: { n: 'x' } },
  }
  const forbidden = await clerk.call('POST', '/automation', write)
  t.match([forbidden.status, forbidden.body], [403, { code: 'forbidden', message: /edit\/data/ }])
  t.equal(
    (await clerk.call('POST', '/automation', { ...write, isActive: false })).status,
    201,
    'not while it does nothing',
  )
  const move = { event: 'onTaskCreated', automationType: 'moveTask', automationDetails: { hubId: yard._id } }
  const hidden = await clerk.call('POST', '/automation', { name: 'm', ...move })
  t.match([hidden.status, hidden.body.errors], [400, [{ path: '/automationDetails/hubId' }]], 'a hub that they lack')

  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const moving = await automate({ ...move, automationDetails: { hubId: { ref: 'task.components.note' } } }, clerk)
  const changing = await automate(
    {
      event: 'onTaskCreated',
      automationType: 'updateTask',
      automationDetails: { components: { count: 1 } },
    },
    clerk,
  )
  const sent = { flowId: flow._id, title: 'x', hubId }
  const fill = await automate({
    event: 'onDataSourceCreated',
    automationType: 'createTask',
    automationDetails: { flowId: flow._id, hubId, task: { title: 'from a record', components: { note: yard._id } } },
  })
  await ask('POST', '/data', { dataTypeId: type._id, values: { n: 'a' } })
  await ended(fill._id, 1)
  t.match(await ended(moving._id, 1), [{ status: 'skipped', reason: 'hidden' }], 'to a hub that the editor lacks')
  t.match(await ended(changing._id, 1), [{ status: 'succeeded' }])

  await ask('PATCH', `/role/${role._id}`, { permissions: permissions.filter((one) => one !== 'edit/task') })
  const shown = await ask('GET', `/automation/${changing._id}`)
  t.match(shown.notice, { reason: 'editorLacksRight' })
  await ask('POST', '/task', sent)
  t.match(
    (await ended(changing._id, 2))[1],
    { status: 'skipped', reason: 'hidden' },
    'a permission that the editor lost',
  )
  const amended = await ask('PATCH', `/automation/${changing._id}`, { name: 'Mine' })
  await known(changing._id, amended.version)
  await ask('POST', '/task', sent)
  t.match((await ended(changing._id, 3))[2], { status: 'succeeded' }, 'the next editor has it')
})

test('chains of automations that set each other off end, told as loops, and go on counting after a restart', async (t) => {
  const { ask, hubId, flow, type, automate, begin, ended, runsOf } = await openOffice(t)
  let dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const self = await automate({
    event: 'onTaskCreated',
    automationType: 'createTask',
    automationDetails: { flowId: flow._id, task: { title: 'again' } },
    rules: { fields: { 'task.title': 'again' } },
  })
  await ask('POST', '/task', { flowId: flow._id, title: 'again', hubId })
  await until('the chain to be under way', async () => Object.keys(await runsOf(self._id)).length > 3)
  await dispatcher.abandon()
  dispatcher = await begin()
  await until('the chain to end', async () =>
    Object.values(await runsOf(self._id)).some(({ reason }) => reason === 'loop'),
  )
  const runs = Object.values(await runsOf(self._id))
  t.same(
    runs.map(({ status, depth }) => [status, depth]),
    [...Array.from({ length: CHAIN_DEPTH_MAX }, (_, depth) => ['succeeded', depth]), ['skipped', CHAIN_DEPTH_MAX]],
  )
  const made = async (): Promise<number> => (await ask('GET', '/tasks?q=again&limit=100')).length
  await until('every task to be listed', async () => (await made()) === CHAIN_DEPTH_MAX + 1)

  const toRecord = await automate({
    event: 'onTaskCreated',
    automationType: 'createOrUpdateDataSource',
    automationDetails: { dataTypeId: type._id, values: { number: { ref: 'task._id' } } },
    rules: { fields: { 'task.title': 'round' } },
  })
  const toTasks = await Promise.all(
    ['one', 'two'].map((name) =>
      automate({
        name,
        event: 'onDataSourceCreated',
        automationType: 'createTask',
        automationDetails: { flowId: flow._id, hubId, task: { title: 'round' } },
      }),
    ),
  )
  await ask('POST', '/task', { flowId: flow._id, title: 'round', hubId })
  await until('all to end', async () => {
    const all = await Promise.all([toRecord, ...toTasks].map(({ _id }) => runsOf(_id)))
    const states = all.flatMap((one) => Object.values(one))
    return states.some(({ reason }) => reason === 'loop') && states.every(({ status }) => status !== 'pending')
  })
  const times = (await ended(toRecord._id, 1)).length
  t.ok(times > 4, `tasks and records set each other off ${times} times`)
  t.ok(times < 1_000, `two branches at each step end after ${times}`)
})

test('an automation for the same task again and again is a loop through somebody outside', async (t) => {
  const { ask, hubId, flow, userId, automate, begin, runsOf } = await openOffice(t)
  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const note = await automate({
    event: 'onTaskAssigned',
    automationType: 'updateTask',
    automationDetails: { components: { note: 'seen' } },
  })
  const task = await ask('POST', '/task', { flowId: flow._id, title: 'x', hubId })
  for (let i = 0; i < 32; i++) {
    await ask('POST', `/task/${task._id}/assign`, { assigneeIds: [userId] })
    await ask('POST', `/task/${task._id}/assign`, { assigneeIds: [] })
  }
  await until('all to end', async () => {
    const runs = Object.values(await runsOf(note._id))
    return runs.length === 32 && runs.every(({ status }) => status !== 'pending')
  })
  const runs = Object.values(await runsOf(note._id))
  t.equal(runs.filter(({ status }) => status === 'succeeded').length, 30)
  t.same(
    runs.slice(30).map(({ reason }) => reason),
    ['loop', 'loop'],
  )
})

test('a field that was renamed is found by the name that an automation knows it by', async (t) => {
  const { ask, hubId, flow, type, automate, begin, ended } = await openOffice(t)
  const renamed = type.fields.map((field: Json) => (field.name === 'phone' ? { ...field, name: 'mobile' } : field))
  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const visit = await automate({
    event: 'onDataSourceCreated',
    automationType: 'createTask',
    automationDetails: { flowId: flow._id, hubId, task: { title: { ref: 'record.values.phone' } } },
    rules: { fields: { 'record.values.phone': { pattern: '^5' } } },
  })
  await ask('PATCH', `/data-type/${type._id}`, { fields: renamed })
  for (const [number, mobile] of [
    ['A', '600'],
    ['B', '500'],
  ])
    await ask('POST', '/data', { dataTypeId: type._id, values: { number, mobile } })
  t.match(await ended(visit._id, 1), [{ status: 'succeeded' }])
  await until('its task to be listed', async () => (await ask('GET', '/tasks?q=500')).length === 1)
  t.equal((await ask('GET', '/tasks?q=600')).length, 0, 'and the rule is held against it')
  const other = [...renamed, { name: 'phone', type: 'text' }]
  await ask('PATCH', `/data-type/${type._id}`, { fields: other })
  await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'C', mobile: '501' } })
  await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'D', phone: '502' } })
  t.equal((await ended(visit._id, 2)).length, 2)
  await until('the other task to be listed', async () => (await ask('GET', '/tasks?q=502')).length === 1)
  t.equal((await ask('GET', '/tasks?q=501')).length, 0, 'a field that has the name now is meant')
})

test('an automation that writes a record is amended after its fields have other names', async (t) => {
  const { ask, type, automate } = await openOffice(t)
  const { _id } = await automate({
    event: 'onTaskFinished',
    automationType: 'createOrUpdateDataSource',
    automationDetails: { dataTypeId: type._id, values: { number: 'A', phone: '500' } },
    isActive: false,
  })
  const fields = type.fields.map((field: Json) => ({ ...field, name: `own ${field.name}` }))
  await ask('PATCH', `/data-type/${type._id}`, { fields })
  const automationDetails = { values: { phone: '600' } }
  t.match(await ask('PATCH', `/automation/${_id}`, { automationDetails }), { automationDetails })
})

test('what was logged while nobody listened is owed, whichever partition is taken when', async (t) => {
  const { ask, hubId, flow, automate, begin, ended } = await openOffice(t, 16)
  const count = await automate({
    event: 'onTaskCreated',
    automationType: 'updateTask',
    automationDetails: { components: { count: 1 } },
  })
  await (await begin()).close()
  for (let i = 0; i < 60; i++) await ask('POST', '/task', { flowId: flow._id, title: 'x', hubId })
  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const runs = await ended(count._id, 60)
  t.same([runs.length, ...new Set(runs.map(({ status }) => status))], [60, 'succeeded'])
})

test('killed at any write, each run does what it does once', { timeout: 900_000 }, async (t) => {
  const { ask, log, hubId, userId, flow, type, automate, begin, ended, runsOf } = await openOffice(t)
  const yard = await ask('POST', '/hub', { name: 'Yard', lat: 1, lng: 1 })
  const made = async (event: string, automationType: string, automationDetails: Json) =>
    automate({ event, automationType, automationDetails, rules: { fields: { 'task.title': automationType } } })
  const all = {
    createTask: await made('onTaskCreated', 'createTask', { flowId: flow._id, task: { title: 'made' } }),
    createAndAssignTask: await made('onTaskCreated', 'createAndAssignTask', {
      ...{ flowId: flow._id, task: { title: 'made and assigned' }, assigneeIds: [userId] },
    }),
    moveTask: await made('onTaskCreated', 'moveTask', { hubId: yard._id }),
    assignTask: await made('onTaskCreated', 'assignTask', { assigneeIds: [userId] }),
    updateTask: await made('onTaskCreated', 'updateTask', { components: { phone: { ref: 'task._id' } } }),
    createOrUpdateDataSource: await made('onTaskCreated', 'createOrUpdateDataSource', {
      ...{ dataTypeId: type._id, values: { number: { ref: 'task._id' }, visits: 1 } },
    }),
  }
  /** What somebody else does between the kill and the next attempt, which that must not undo. */
  const meddle: { [automationType: string]: (task: Json) => Promise<unknown> } = {
    moveTask: ({ _id }) => ask('PATCH', `/task/${_id}`, { hubId }),
    assignTask: ({ _id }) => ask('POST', `/task/${_id}/assign`, { assigneeIds: [] }),
    updateTask: ({ _id }) => ask('PATCH', `/task/${_id}`, { components: { phone: 'else' } }),
    createOrUpdateDataSource: async ({ _id }) => {
      for (const { _id: id } of await recordsOf(_id)) await ask('PATCH', `/data/${id}`, { values: { visits: 2 } })
    },
  }
  const recordsOf = (number: string): Promise<Json[]> =>
    ask('GET', `/data?dataTypeId=${type._id}&values.number=${number}`)
  /** The streams that the runs of a type write. */
  const written = async (automationType: string, { _id }: Json): Promise<string[]> => {
    if (automationType === 'createOrUpdateDataSource') return (await recordsOf(_id)).map(({ _id: id }) => `data-${id}`)
    if (!automationType.startsWith('create')) return [`task-${_id}`]
    const tasks: Json[] = await ask('GET', '/tasks?q=made&limit=500')
    return tasks.map(({ _id: id }) => `task-${id}`)
  }
  // From here on everything is owed.
  await (await begin()).close()
  for (const [automationType, { _id: automationId }] of Object.entries(all)) {
    for (let writes = 1, isDone = false; !isDone; writes++) {
      const task = await ask('POST', '/task', { flowId: flow._id, title: automationType, hubId })
      const dying = dyingLog(log, writes)
      const first = await begin(dying.log).catch(() => undefined)
      await until('it to die or end', async () => {
        if (dying.isDead) return true
        const runs = Object.values(await runsOf(automationId))
        return runs.length === writes && runs.every(({ status }) => status !== 'pending')
      })
      isDone = !dying.isDead
      await first?.abandon()
      await meddle[automationType]?.(task)
      const second = await begin()
      const runs = await ended(automationId, writes)
      await second.close()
      const what = `${automationType} killed at write ${writes}`
      t.equal(runs.at(-1)?.status, 'succeeded', what)
      const isMaking = automationType.includes('reate') && automationType.endsWith('Task')
      const expected = isMaking ? writes : 1
      const ownEvents = async (): Promise<number> => {
        const streams = await written(automationType, task)
        const events = (await Promise.all(streams.map((stream) => log.read(stream, 0, 100)))).flat()
        return events.filter(({ metadata }) => metadata.actor === `automation:${automationId}`).length
      }
      await until(`${what}: its writing to be listed`, async () => (await ownEvents()) >= expected)
      t.equal(await ownEvents(), expected, what)
    }
  }
})

test('an action waits until the lists have what led to it, and uses up no attempt meanwhile', async (t) => {
  const office = await openOffice(t)
  const { begin, automate, ask, ended, clock, flow, type, hubId } = office
  let waits = 0
  let isListed = false
  const get: typeof office.tables.get = async (table, ...asked) =>
    table === RECORDS && !isListed ? undefined : office.tables.get(table, ...asked)
  const settle: typeof office.settle = async (...asked) => {
    isListed = ++waits > 1 && (await office.settle(...asked))
    return isListed
  }
  const dispatcher = await begin(office.log, { tables: Object.assign(Object.create(office.tables), { get }), settle })
  t.teardown(() => dispatcher.close())
  const record = { ref: 'record._id' }
  const { _id } = await automate({
    event: 'onDataSourceCreated',
    automationType: 'createTask',
    automationDetails: {
      flowId: flow._id,
      hubId,
      task: { title: 'Call', dataSource: { dataTypeId: type._id, dataId: record }, components: { customer: record } },
    },
  })
  await ask('POST', '/data', { dataTypeId: type._id, values: { number: 'C-9', phone: '22 555' } })
  const isOver = async () => Object.values(await office.runsOf(_id)).some(({ status }) => status !== 'pending')
  await until('the run to end', async () => {
    clock.advance(1_000)
    return isOver()
  })
  const [run] = await ended(_id, 1)
  t.match(run, { status: 'succeeded', last: { failures: 0 } })
  t.equal(waits, 2)
})
