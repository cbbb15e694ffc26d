import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'

test('a task that comes to another hub stays with those who have that, and can be started there', async (t) => {
  const { task, move, ada, bob, other } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id, bob.id] })
  t.match(await move(_id, 'move', { hubId: other }), {
    status: 200,
    body: { data: { state: 'assigned', assigneeIds: [bob.id], assignedAt: String } },
  })
  t.equal((await move(_id, 'start', {}, bob.session)).status, 200)
  const { _id: hers } = await task({ assigneeIds: [ada.id] })
  t.match((await move(hers, 'move', { hubId: other })).body.data, {
    state: 'new',
    assigneeIds: [],
    assignedAt: undefined,
  })
})

test('a task says who started and who finished it', async (t) => {
  const { task, move, make, ada, bob, hubId } = await openTasks(t)
  const team = await make('/team', { name: 'T', hubId, userIds: [ada.id, bob.id] })
  const { _id } = await task({ teamId: team._id })
  t.match((await move(_id, 'start', {}, ada.session)).body.data, { startedBy: ada.id, finishedBy: undefined })
  const finished = await move(_id, 'finish', { components: { receiver: 'X' } }, bob.session)
  t.match(finished.body.data, { startedBy: ada.id, finishedBy: bob.id })
})

test('a task that is over is done again by whoever may still have it, with what was filled in', async (t) => {
  const { task, move, owner, ada, bob, hubId, other } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id, bob.id] })
  t.equal((await move(_id, 'reopen')).status, 409, 'it is not over')
  await move(_id, 'start', { lat: 52, lng: 21 }, ada.session)
  await move(_id, 'finish', { lat: 52, lng: 21, components: { receiver: 'X' } }, ada.session)
  t.equal((await move(_id, 'reopen', {}, ada.session)).status, 403, 'it needs dispatch/task')
  const again = await move(_id, 'reopen', { reason: 'Wrong door' })
  t.match(again, {
    status: 200,
    body: { data: { state: 'assigned', assigneeIds: [ada.id, bob.id], components: { receiver: 'X' } } },
  })
  for (const name of ['started', 'finished'])
    for (const what of ['At', 'By', 'Place']) t.equal(again.body.data[name + what], undefined, name + what)
  t.equal((await move(_id, 'start', {}, ada.session)).status, 200, 'it can be started')
  await move(_id, 'cancel', { reason: 'Rain' })
  t.equal((await move(_id, 'move', { hubId })).status, 409, 'nor does it move to the hub where it is')
  await owner.call('PATCH', `/user/${ada.id}`, { hubId: [other] })
  t.match((await move(_id, 'reopen')).body.data, {
    state: 'assigned',
    assigneeIds: [bob.id],
    cancelledAt: undefined,
    cancelReason: undefined,
  })
  const { _id: nobodys } = await task({ hubId })
  await move(nobodys, 'cancel')
  t.match((await move(nobodys, 'reopen')).body.data, { state: 'new', assignedAt: undefined })
  const { data } = (await owner.call('GET', `/task/${_id}/history`)).body
  const types = data.map(({ type }: { type: string }) => type)
  t.same(types, ['created', 'started', 'finished', 'reopened', 'started', 'cancelled', 'reopened'])
})

test('an assignment has its time, and leaves what is under way under way', async (t) => {
  const { task, move, ada, bob, at } = await openTasks(t)
  const { _id } = await task()
  t.match((await move(_id, 'assign', { assigneeIds: [ada.id], at: at(-60) })).body.data, {
    state: 'assigned',
    assignedAt: at(-60),
  })
  for (const far of ['2126-01-01T00:00:00Z', '1926-01-01T00:00:00Z'])
    t.match(await move(_id, 'assign', { assigneeIds: [ada.id], at: far }), { body: { errors: [{ path: '/at' }] } })
  await move(_id, 'start', { at: at(-30) }, ada.session)
  const body = { assigneeIds: [bob.id], at: at(-10) }
  t.match((await move(_id, 'assign', body)).body.data, {
    state: 'inProgress',
    assigneeIds: [bob.id],
    startedBy: ada.id,
  })
  t.match((await move(_id, 'assign', { assigneeIds: [] })).body.data, {
    state: 'inProgress',
    assigneeIds: [],
    startedBy: ada.id,
  })
})

test('clocks differ by up to five minutes', async (t) => {
  const { task, move, ada, at } = await openTasks(t)
  const assignedAt = at(0)
  const { _id } = await task({ assigneeIds: [ada.id] })
  t.match(await move(_id, 'start', { at: at(-301) }, ada.session), { status: 409, body: { code: 'conflict' } })
  t.match(await move(_id, 'start', { at: at(-300) }, ada.session), { body: { data: { startedAt: assignedAt } } })
  t.equal((await move(_id, 'start', { at: at(-300) }, ada.session)).status, 200, 'the same again')
  const body = { components: { receiver: 'X' } }
  t.equal((await move(_id, 'finish', { ...body, at: at(-301) }, ada.session)).status, 409)
  const finished = await move(_id, 'finish', { ...body, at: at(-299) }, ada.session)
  t.match(finished, { status: 200, body: { data: { finishedAt: assignedAt } } })
})

test('a task that is over keeps a user who is deleted, one that is open does not', async (t) => {
  const { task, move, owner, ada, bob } = await openTasks(t)
  const over = (await task({ assigneeIds: [bob.id] }))._id
  const open = (await task({ assigneeIds: [ada.id, bob.id] }))._id
  await move(over, 'start', {}, bob.session)
  await move(over, 'finish', { components: { receiver: 'X' } }, bob.session)
  t.equal((await owner.call('DELETE', `/user/${bob.id}`)).status, 200)
  const read = async (id: string) => (await owner.call('GET', `/task/${id}`)).body.data
  t.match(await read(open), { state: 'assigned', assigneeIds: [ada.id] })
  t.match(await read(over), { state: 'finished', assigneeIds: [bob.id], startedBy: bob.id, finishedBy: bob.id })
  t.match((await move(over, 'reopen')).body.data, { state: 'new', assigneeIds: [] }, 'nobody is left to do it')
})

test('a task whose flow is gone is not reopened, and not for a fault of the request', async (t) => {
  const { task, move, owner, flow } = await openTasks(t)
  const { _id } = await task()
  await move(_id, 'cancel')
  t.equal((await owner.call('DELETE', `/flow/${flow._id}`)).status, 200)
  t.match(await move(_id, 'reopen'), { status: 409, body: { code: 'conflict', message: /flow/ } })
  t.match((await owner.call('GET', `/task/${_id}`)).body.data, { state: 'cancelled' })
})
