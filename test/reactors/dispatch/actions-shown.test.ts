import { test } from 'tap'
import { until } from '../../support/service.ts'
import { type Json, openOffice } from './open-office.ts'

test('a dry run says what would be done, and does nothing', async (t) => {
  const { ask, hubId, userId, flow, type, automate } = await openOffice(t)
  const rules = { fields: { 'task.flowId': flow._id, 'task.components.count': 7 } }
  const cases: [string, string, Json, Json, Json?][] = [
    [
      'onTaskCreated',
      'createTask',
      { flowId: flow._id, hubId, task: { title: { ref: 'task.title' } } },
      { task: { title: 'Sample task', flowId: flow._id, hubId } },
      {},
    ],
    [
      'onTaskFinished',
      'createAndAssignTask',
      { flowId: flow._id, task: { title: 'x' }, assigneeIds: [userId.toUpperCase()] },
      { task: { title: 'x', assigneeIds: [userId] } },
    ],
    [
      'onFinishTrip',
      'createTask',
      { flowId: flow._id, task: { title: { ref: 'tracker.name' }, durationMinutes: { ref: 'trip.distance' } } },
      { task: { title: 'Sample tracker', durationMinutes: 12_500, hubId: /./ } },
      {},
    ],
    ['onTaskCreated', 'moveTask', { hubId }, { move: { type: 'move', hubId } }],
    ['onTaskAssigned', 'assignTask', { assigneeIds: [userId] }, { move: { assigneeIds: [userId] } }],
    [
      'onTaskFinished',
      'updateTask',
      {
        components: {
          count: { ref: 'task.components.count' },
          note: { ref: 'old.task.state' },
          phone: { fromDataSource: 'phone' },
        },
      },
      { components: { count: 7, note: 'new' } },
    ],
    [
      'onDataSourceCreated',
      'createOrUpdateDataSource',
      { dataTypeId: type._id, values: { number: { ref: 'record._id' } } },
      { isNew: true, dataTypeId: type._id },
      {},
    ],
  ]
  for (const [event, automationType, automationDetails, expected, fields = rules.fields] of cases) {
    const of = { name: automationType, event, automationType, automationDetails }
    const made = await automate({ ...of, rules: { fields } })
    t.same(made.automationDetails, of.automationDetails, 'details are answered as they were sent')
    const told = await ask('POST', `/automation/${made._id}/test`)
    t.match(told, { isDone: false, action: automationType, ...expected }, automationType)
  }
  t.same(await ask('GET', '/tasks'), [])
  t.same(await ask('GET', `/data?dataTypeId=${type._id}`), [])
})

test('what an automation names is not deleted before it, and who is gone is told in a notice', async (t) => {
  const { owner, ask, flow, type, automate, begin, ended, hubId } = await openOffice(t)
  const yard = await ask('POST', '/hub', { name: 'Yard', lat: 1, lng: 1 })
  const other = await ask('POST', '/data-type', {
    name: 'Other',
    primaryKey: 'n',
    fields: [{ name: 'n', type: 'text' }],
  })
  const role = (await ask('GET', '/roles?key=fieldUser'))[0]
  const person = async (email: string): Promise<Json> =>
    ask('POST', '/user', { name: 'P', email, password: 'Correct-horse-7-battery', roleId: role._id, hubId: [hubId] })
  const [one, two] = [await person('one@example.com'), await person('two@example.com')]
  const creates = await automate({
    event: 'onTaskCreated',
    automationType: 'createTask',
    automationDetails: { flowId: flow._id, hubId: yard._id, task: { title: 'x' } },
    rules: { fields: { 'task.title': 'never' } },
  })
  const writes = await automate({
    event: 'onTaskCreated',
    automationType: 'createOrUpdateDataSource',
    automationDetails: { dataTypeId: other._id, values: { n: '1' } },
    rules: { fields: { 'task.title': 'never' } },
  })
  for (const [path, id] of [
    [`/flow/${flow._id}`, creates._id],
    [`/hub/${yard._id}`, creates._id],
    [`/data-type/${other._id}`, writes._id],
  ]) {
    const { status, body } = await owner.call('DELETE', path)
    t.match([status, body.errors], [409, [{ path: `/automation/${id}` }]], path)
  }
  t.equal(type.name, 'Customers')
  await ask('DELETE', `/automation/${writes._id}`)
  await until('nothing to name it', async () => (await owner.call('DELETE', `/data-type/${other._id}`)).status === 200)

  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const assigns = await automate({
    event: 'onTaskCreated',
    automationType: 'assignTask',
    automationDetails: { assigneeIds: [one._id, two._id] },
  })
  const make = () => ask('POST', '/task', { flowId: flow._id, title: 'x', hubId })
  await ask('DELETE', `/user/${one._id}`)
  t.equal((await ask('GET', `/automation/${assigns._id}`)).notice, undefined)
  const task = await make()
  await ended(assigns._id, 1)
  await until('whoever is left to be assigned', async () => {
    const { assigneeIds } = await ask('GET', `/task/${task._id}`)
    return assigneeIds.length === 1 && assigneeIds[0] === two._id
  })
  await ask('DELETE', `/user/${two._id}`)
  t.match((await ask('GET', `/automation/${assigns._id}`)).notice, { reason: 'peopleGone' })
  await make()
  t.match((await ended(assigns._id, 2))[1], { status: 'dead', last: { error: /nobody who is still there/ } })
})

test('what can never be done ends the run at once, with the reason, and does not hold others up', async (t) => {
  const { ask, hubId, flow, type, automate, begin, ended } = await openOffice(t)
  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const cases: [string, Json, RegExp][] = [
    ['createTask', { flowId: flow._id, task: { title: { ref: 'task.description' } } }, /\/title is required/],
    ['createTask', { flowId: flow._id, task: { title: 'x', priority: { ref: 'task.title' } } }, /\/priority/],
    ['createTask', { flowId: flow._id, hubId: { ref: 'task._id' }, task: { title: 'x' } }, /\/hubId names nothing/],
    ['moveTask', { hubId: { ref: 'task.title' } }, /\/hubId/],
    ['assignTask', { assigneeIds: { ref: 'task.tags' } }, /\/assigneeIds/],
    ['assignTask', { assigneeIds: [{ ref: 'task.flowId' }] }, /\/assigneeIds\/0 names nothing/],
    ['updateTask', { components: { count: { ref: 'task.title' } } }, /\/components\/count must be a number/],
    ['updateTask', { components: { nothing: 1 } }, /\/components\/nothing is not a component/],
    [
      'createOrUpdateDataSource',
      { dataTypeId: type._id, values: { number: { ref: 'task.description' } } },
      /number is required/,
    ],
    [
      'createOrUpdateDataSource',
      { dataTypeId: type._id, values: { number: '1', visits: { ref: 'task.title' } } },
      /visits must be/,
    ],
    ['notification', { channel: 'email', to: { ref: 'task.title' }, text: 'x' }, /is not a user or a public e-mail/],
  ]
  const made = []
  for (const [automationType, automationDetails] of cases)
    made.push(
      await automate({
        event: 'onTaskCreated',
        automationType,
        automationDetails,
        rules: { fields: { 'task.tags': ['try'] } },
      }),
    )
  for (let i = 0; i < 7; i++) await ask('POST', '/task', { flowId: flow._id, title: 'Thing', hubId, tags: ['try'] })
  for (const [i, [automationType, , error]] of cases.entries()) {
    const runs = await ended(made[i]._id, 7)
    t.same([...new Set(runs.map(({ status }) => status))], ['dead'], `${automationType}: all seven, without a probe`)
    t.match(runs[0].last?.error, error)
  }
  t.match(await ask('GET', '/tasks'), { length: 7 })
})

test("another organization's things are not there, and hostile values disturb nothing else", async (t) => {
  const { owner, ask, signup, send, flow, type, hubId, automate, begin, ended } = await openOffice(t)
  const stranger = await signup()
  const theirs = {
    flow: (await stranger.call('GET', '/flows')).body.data[0]._id,
    hub: stranger.body.data.hubId[0],
    user: (await stranger.call('GET', '/user')).body.data._id,
  }
  const refused: [string, Json, string][] = [
    ['createTask', { flowId: theirs.flow, hubId, task: { title: 'x' } }, '/automationDetails/flowId'],
    ['createTask', { flowId: flow._id, hubId: theirs.hub, task: { title: 'x' } }, '/automationDetails/hubId'],
    ['assignTask', { assigneeIds: [theirs.user] }, '/automationDetails/assigneeIds/0'],
    ['moveTask', { hubId: theirs.hub }, '/automationDetails/hubId'],
  ]
  for (const [automationType, automationDetails, path] of refused) {
    const body = { name: 'x', event: 'onTaskCreated', automationType, automationDetails }
    const { status, body: answer } = await owner.call('POST', '/automation', body)
    t.match([status, answer.errors], [400, [{ path }]], automationType)
  }
  const foreign = { dataTypeId: type._id, values: { number: '1' } }
  const body = {
    name: 'x',
    event: 'onTaskCreated',
    automationType: 'createOrUpdateDataSource',
    automationDetails: foreign,
  }
  t.match((await stranger.call('POST', '/automation', body)).body.errors, [{ path: '/automationDetails/dataTypeId' }])

  const dispatcher = await begin()
  t.teardown(() => dispatcher.close())
  const fine = await automate({
    event: 'onTaskCreated',
    automationType: 'updateTask',
    automationDetails: { components: { count: 1 } },
  })
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`n${i}`, { ref: 'task.description' }]))
  const large = await automate({
    event: 'onTaskCreated',
    automationType: 'createTask',
    automationDetails: { flowId: flow._id, task: { title: 'x', load: many } },
    rules: { fields: { 'task.title': 'large' } },
  })
  const away = await automate({
    event: 'onTaskCreated',
    automationType: 'moveTask',
    automationDetails: { hubId: { ref: 'task.components.phone' } },
    rules: { fields: { 'task.title': 'away' } },
  })
  const hers = await automate({
    event: 'onTaskCreated',
    automationType: 'assignTask',
    automationDetails: { assigneeIds: [{ ref: 'task.components.phone' }] },
    rules: { fields: { 'task.title': 'hers' } },
  })
  const make = (title: string, more: Json = {}) => ask('POST', '/task', { flowId: flow._id, title, hubId, ...more })
  await make('large', { description: 'ä'.repeat(5_000) })
  await make('away', { components: { phone: theirs.hub } })
  await make('hers', { components: { phone: theirs.user } })
  t.match(await ended(large._id, 1), [{ status: 'dead', last: { error: /more than 262144 bytes/ } }])
  t.match(await ended(away._id, 1), [{ status: 'dead', last: { error: /hubId names nothing/ } }])
  t.match(await ended(hers._id, 1), [{ status: 'dead', last: { error: /assigneeIds\/0 names nothing/ } }])
  t.match(await ended(fine._id, 3), [{ status: 'succeeded' }, { status: 'succeeded' }, { status: 'succeeded' }])

  const amended = await send(owner)(
    'PATCH',
    `/automation/${fine._id}`,
    JSON.parse('{"automationDetails": {"__proto__": {"x": 1}, "components": {"count": 2}}}'),
  )
  t.same(Object.keys(amended.automationDetails), ['components'])
})
