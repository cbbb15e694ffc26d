import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'

const DAY_MS = 86_400_000

test('what was done before the task was given away holds, and who lost it is told so', async (t) => {
  const { task, move, owner, ada, bob, at, clock } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id] })
  const [started, finished] = [at(60), at(120)]
  clock.advance(300_000)
  const lostAt = at(0)
  await move(_id, 'assign', { assigneeIds: [bob.id] })
  clock.advance(60_000)
  const takenAway = { at: lostAt, by: { type: 'user' } }
  const read = await ada.session.call('GET', `/task/${_id}`)
  t.match(read, { status: 200, body: { data: { _id, title: 'Deliver', state: 'assigned', takenAway } } })
  t.same(Object.keys(read.body.data).sort(), ['_id', 'state', 'takenAway', 'title'])
  for (const [type, body] of [
    ['start', {}],
    ['start', { at: at(0) }],
    ['finish', { at: at(0) }],
    ['cancel', {}],
  ] as const)
    t.match(await move(_id, type, body, ada.session), { status: 409, body: { code: 'taken_away' } }, type)
  t.match(await move(_id, 'start', { at: started }, ada.session), {
    status: 200,
    body: { data: { state: 'assigned', overtaken: true } },
  })
  t.match((await owner.call('GET', `/task/${_id}`)).body.data, { state: 'assigned', assigneeIds: [bob.id] })
  const sent = { at: finished, components: { receiver: 'X' } }
  for (const times of ['once', 'again'])
    t.match(await move(_id, 'finish', sent, ada.session), { status: 200, body: { data: { state: 'finished' } } }, times)
  const { data } = (await owner.call('GET', `/task/${_id}`)).body
  t.match(data, { state: 'finished', startedAt: started, finishedAt: finished, startedBy: ada.id, finishedBy: ada.id })
  t.match(data, { assigneeIds: [bob.id], components: { receiver: 'X' } })
  t.equal(data.late, undefined)
  const history = (await owner.call('GET', `/task/${_id}/history`)).body.data
  t.match(history, [
    { type: 'created', overtaken: undefined },
    { type: 'assigned', overtaken: true },
    { type: 'started', at: started, overtaken: true },
    { type: 'finished', at: finished, overtaken: undefined },
  ])
})

test('what was finished by somebody else meanwhile stays so', async (t) => {
  const { task, move, owner, ada, bob, at, clock, login } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id] })
  const [started, finished] = [at(60), at(120)]
  clock.advance(300_000)
  await move(_id, 'assign', { assigneeIds: [bob.id] })
  await move(_id, 'start', {}, bob.session)
  await move(_id, 'finish', { components: { receiver: 'B' } }, bob.session)
  await move(_id, 'start', { at: started }, ada.session)
  const late = await move(_id, 'finish', { at: finished, components: { receiver: 'A' } }, ada.session)
  t.match(late, { status: 200, body: { data: { state: 'finished', overtaken: true } } })
  const { data } = (await owner.call('GET', `/task/${_id}`)).body
  t.match(data, { finishedBy: bob.id, components: { receiver: 'B' } })
  clock.advance(8 * DAY_MS)
  const later = await login(`ada.${owner.email}`)
  t.equal((await later.call('GET', `/task/${_id}`)).status, 404, 'it is long gone')
})

test('what another person finds at a task that they never had is nothing', async (t) => {
  const { task, move, ada, bob } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id] })
  t.equal((await bob.session.call('GET', `/task/${_id}`)).status, 404)
  t.equal((await move(_id, 'start', {}, bob.session)).status, 404)
})
