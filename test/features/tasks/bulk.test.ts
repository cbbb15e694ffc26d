import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'

test('of many tasks at once each is made or refused by itself, and a repeat makes none twice', async (t) => {
  const { owner, ada, flow, hubId, other } = await openTasks(t)
  const good = (more: object = {}) => ({ flowId: flow._id, title: 'Deliver', hubId, ...more })
  const own = randomUUID()
  const tasks = [
    good({ _id: own, externalId: 'order-1', assigneeIds: [ada.id] }),
    good({ title: '' }),
    good({ externalId: 'order-1' }),
    7,
    good({ assigneeIds: [ada.id], hubId: other }),
    good({ components: { nothing: 1 } }),
    JSON.parse('{"__proto__": {"title": "x"}}'),
    good({ title: 'Last' }),
  ]
  const send = (some: unknown[]) => owner.call('POST', '/tasks/bulk', { tasks: some }, { seed: Buffer.alloc(32, 3) })
  const made = await send(tasks)
  t.equal(made.status, 200)
  const { created, rejected } = made.body.data
  t.equal(created.length, 2)
  t.equal(created[0], own)
  t.match(rejected, [
    { index: 1, code: 'invalid', message: /title/ },
    { index: 2, code: 'key_in_use', message: /externalId/ },
    { index: 3, code: 'invalid', message: /object/ },
    { index: 4, code: 'invalid', message: /assigneeIds/ },
    { index: 5, code: 'invalid', message: /nothing/ },
    { index: 6, code: 'invalid', message: /__proto__/ },
  ])
  t.match((await owner.call('GET', `/task/${created[1]}`)).body.data, { title: 'Last', state: 'new' })
  t.same((await send(tasks)).body.data.created, created, 'the same ids')
  const again = await owner.call('POST', '/tasks/bulk', { tasks: tasks.slice(0, 1) })
  t.same(again.body.data, { created: [own], rejected: [] }, 'the same item by its id')
  t.equal((await owner.call('GET', '/tasks')).body.total, 2)
  t.equal((await ada.session.call('POST', '/tasks/bulk', { tasks: [good()] })).status, 403)
  t.equal((await owner.call('POST', '/tasks/bulk', { tasks: Array(501).fill(good()) })).status, 400)
  t.equal((await owner.call('POST', '/tasks/bulk', { tasks: [] })).status, 400)
})

test('500 tasks of which every second one is wrong', async (t) => {
  const { owner, flow, hubId } = await openTasks(t)
  const tasks = Array.from({ length: 500 }, (_, i) => ({ flowId: flow._id, title: i % 2 ? '' : `Stop ${i}`, hubId }))
  const { created, rejected } = (await owner.call('POST', '/tasks/bulk', { tasks })).body.data
  t.same([created.length, rejected.length], [250, 250])
  t.same(rejected.map(({ index }: { index: number }) => index % 2).includes(0), false)
  t.equal((await owner.call('GET', '/tasks')).body.total, 250)
})

test('many tasks are assigned at once, each by the rules of one', async (t) => {
  const { owner, ada, bob, task, move, make, hubId, other } = await openTasks(t)
  const [one, two, over, elsewhere] = [await task(), await task(), await task(), await task({ hubId: other })]
  await move(over._id, 'cancel')
  const unknown = randomUUID()
  const taskIds = [one._id, elsewhere._id, two._id.toUpperCase(), over._id, unknown, 'x', one._id]
  const assign = (body: object, by = owner) => by.call('POST', '/tasks/assign', body)
  const { status, body } = await assign({ taskIds, assigneeIds: [ada.id.toUpperCase()] })
  t.equal(status, 200)
  t.same(body.data.changed, [one._id, two._id], 'one that is named twice is listed once')
  t.match(body.data.rejected, [
    { index: 1, code: 'invalid', message: /hub/ },
    { index: 3, code: 'conflict' },
    { index: 4, code: 'not_found', message: `There is no task ${unknown}.` },
    { index: 5, code: 'invalid' },
  ])
  t.match((await owner.call('GET', `/task/${two._id}`)).body.data, { state: 'assigned', assigneeIds: [ada.id] })
  const teamId = (await make('/team', { name: 'Team', hubId, userIds: [bob.id] }))._id
  const toTeam = await assign({ taskIds: [two._id], assigneeIds: [], teamId })
  t.same(toTeam.body.data, { changed: [two._id], rejected: [] })
  t.match((await owner.call('GET', `/task/${two._id}`)).body.data, { assigneeIds: [], teamId })
  await assign({ taskIds: [two._id], teamId: null })
  t.match((await owner.call('GET', `/task/${two._id}`)).body.data, { state: 'new', teamId: undefined })
  t.match(await assign({ taskIds: [one._id] }), { status: 400 }, 'to nobody is said')
  t.equal((await assign({ taskIds: [one._id], assigneeIds: [] }, ada.session)).status, 403)
})
