import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'
import type { Session } from '../../support/open-identity.ts'
import { formOf, png } from '../../support/pictures.ts'

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

test('a step that does not count since a colleague was faster, or the office cancelled, says so', async (t) => {
  const { task, move, owner, ada, bob, at, clock } = await openTasks(t)
  const both = (await task({ assigneeIds: [ada.id, bob.id] }))._id
  const [ownStart, ownEnd, bobsStart, bobsEnd] = [at(60), at(120), at(70), at(110)]
  clock.advance(300_000)
  const of = (answer: { status: number; body: { data: object } }) => [
    answer.status,
    (answer.body.data as { overtaken?: true }).overtaken,
  ]
  t.same(of(await move(both, 'start', { at: bobsStart }, bob.session)), [200, undefined])
  const bobs = { at: bobsEnd, components: { receiver: 'B' } }
  for (const times of ['once', 'again'])
    t.same(of(await move(both, 'finish', bobs, bob.session)), [200, undefined], times)
  const sent = { at: ownEnd, components: { receiver: 'A' } }
  t.same(of(await move(both, 'start', { at: ownStart }, ada.session)), [200, true])
  for (const times of ['once', 'again']) t.same(of(await move(both, 'finish', sent, ada.session)), [200, true], times)
  t.match((await owner.call('GET', `/task/${both}`)).body.data, { finishedBy: bob.id, overtaken: undefined })

  const { _id } = await task({ assigneeIds: [ada.id] })
  const started = at(1)
  clock.advance(60_000)
  await move(_id, 'cancel')
  const late = await move(_id, 'start', { at: started }, ada.session)
  t.match(late.body.data, { state: 'cancelled', overtaken: true }, 'a cancelled task is still hers')
})

test('what another person finds at a task that they never had is nothing', async (t) => {
  const { task, move, ada, bob } = await openTasks(t)
  const { _id } = await task({ assigneeIds: [ada.id] })
  t.equal((await bob.session.call('GET', `/task/${_id}`)).status, 404)
  t.equal((await move(_id, 'start', {}, bob.session)).status, 404)
})

const PROOF = {
  name: 'Proof',
  steps: [
    {
      id: 'one',
      name: 'One',
      components: [
        { id: 'photo', type: 'photo', required: true },
        { id: 'note', type: 'text' },
        { id: 'sum', type: 'number' },
        { id: 'fixed', type: 'text', readOnly: true },
      ],
    },
  ],
}

const openProofs = async (t: Parameters<typeof openTasks>[0]) => {
  const world = await openTasks(t)
  const { _id: flowId } = await world.make('/flow', PROOF)
  const send = async (id: string, by: Session, fields: { [name: string]: string } = {}) => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ componentId: 'photo', ...fields })) form.append(name, value)
    form.append('file', new File([png()], 'door.png'))
    const { body, headers } = await formOf(form)
    return by.call('POST', `/task/${id}/files`, body, { headers })
  }
  const fill = (id: string, body: object, by: Session) => by.call('PATCH', `/task/${id}`, body)
  const read = async (id: string) => (await world.owner.call('GET', `/task/${id}`)).body.data
  return { ...world, send, fill, read, proof: (body: object) => world.task({ flowId, ...body }) }
}

type Proofs = Awaited<ReturnType<typeof openProofs>>

/** What the office does while a phone has no connection. */
const CHANGES: { [name: string]: (world: Proofs, id: string) => Promise<{ status: number }> } = {
  cancelled: ({ move }, id) => move(id, 'cancel'),
  'given to another': ({ move, bob }, id) => move(id, 'assign', { assigneeIds: [bob.id] }),
  'moved to a hub that its user lacks': ({ move, other }, id) => move(id, 'move', { hubId: other }),
  'without its user’s hub': ({ owner, ada, other }) => owner.call('PATCH', `/user/${ada.id}`, { hubId: [other] }),
}

for (const [name, change] of Object.entries(CHANGES))
  test(`a task that is ${name} is finished with the photo that was taken before`, async (t) => {
    const world = await openProofs(t)
    const { proof, send, move, fill, read, ada, at, clock } = world
    const { _id } = await proof({ assigneeIds: [ada.id] })
    const [started, taken, filled, finished] = [at(60), at(70), at(80), at(90)]
    clock.advance(300_000)
    t.equal((await change(world, _id)).status, 200)
    clock.advance(60_000)
    const session = await world.login(ada.session.email)
    const code = name === 'cancelled' ? 'conflict' : 'taken_away'
    const refused = { status: 409, body: { code } }
    t.match(await send(_id, session), refused, 'a photo of now')
    t.match(await send(_id, session, { at: at(0) }), refused, 'a photo that says so')
    t.match(await fill(_id, { components: { note: 'late' } }, session), refused, 'a note of now')
    t.match(await fill(_id, { components: { note: 'late' }, at: at(0) }, session), refused)
    t.match(await fill(_id, { title: 'Mine', at: filled }, session), { status: code === 'conflict' ? 403 : 409 })
    t.match(await move(_id, 'finish', { at: finished }, session), refused, 'it was not started')
    t.equal((await move(_id, 'start', { at: started }, session)).status, 200)
    t.match(
      await move(_id, 'finish', { at: finished }, session),
      { status: 400, body: { errors: [{ path: '/components/photo' }] } },
      'the photo is required',
    )
    const photo = await send(_id, session, { at: taken })
    t.match(photo, { status: 201, body: { data: { taskId: _id, componentId: 'photo', name: 'door.png' } } })
    t.match(await fill(_id, { components: { fixed: 'x' }, at: filled }, session), { status: 400 })
    t.equal((await fill(_id, { components: { note: 'at the door' }, at: filled }, session)).status, 200)
    const done = await move(_id, 'finish', { at: finished, components: { sum: 5 } }, session)
    t.match(done, { status: 200, body: { data: { state: 'finished' } } })
    t.match(await read(_id), {
      state: 'finished',
      finishedBy: ada.id,
      finishedAt: finished,
      components: { photo: [photo.body.data._id], note: 'at the door', sum: 5 },
      filledAtMs: undefined,
    })
    const after = await send(_id, session, { at: String(Date.parse(finished)) })
    t.equal(after.status, 201, 'what belongs to it may come behind it, its time in milliseconds')
    t.equal((await send(_id, session, { at: String(Date.parse(finished) + 1) })).status, 409)
    const { data } = (await world.owner.call('GET', `/task/${_id}/history`)).body
    t.match(
      data.filter(({ at: when }: { at: string }) => when === taken),
      [{ type: 'changed' }],
    )
  })

test('of one component what was written last counts, whenever it comes', async (t) => {
  const { proof, fill, read, make, move, ada, bob, hubId, at, clock, owner } = await openProofs(t)
  const team = await make('/team', { name: 'T', hubId, userIds: [ada.id, bob.id] })
  const { _id } = await proof({ teamId: team._id })
  const [first, second, third] = [at(10), at(20), at(30)]
  clock.advance(60_000)
  const write = async (note: string, when: string | undefined, by: Session) => {
    const answer = await fill(_id, { components: { note }, ...(when !== undefined && { at: when }) }, by)
    t.equal(answer.status, 200)
    t.equal(answer.body.data.components.note, (await read(_id)).components.note)
    return answer.body.data
  }
  t.match(await write('second', second, bob.session), { components: { note: 'second' } })
  const { version } = await read(_id)
  t.match(await write('first', first, ada.session), { components: { note: 'second' }, version })
  t.match(await write('second', second, bob.session), { version }, 'the same again changes nothing')
  t.match(await write('third', third, ada.session), { components: { note: 'third' } })
  t.match(await write('office', undefined, owner), { components: { note: 'office' } })
  t.match(await write('third', third, ada.session), { components: { note: 'office' } }, 'the office came later')
  const ahead = at(3_600)
  t.match(await write('ahead', ahead, ada.session), { components: { note: 'ahead' } })
  t.match(await write('corrected', undefined, owner), { components: { note: 'corrected' } })
  t.match(await write('ahead', ahead, ada.session), { components: { note: 'corrected' } }, 'no clock beats the office')
  t.equal((await move(_id, 'start', { at: at(0) }, ada.session)).status, 200)
})

test('a time in the far past or future is refused wherever it is said, and changes nothing', async (t) => {
  const { proof, send, fill, move, read, ada, bob, at, clock } = await openProofs(t)
  const mine = (await proof({ assigneeIds: [ada.id] }))._id
  const lost = (await proof({ assigneeIds: [ada.id] }))._id
  clock.advance(60_000)
  await move(lost, 'assign', { assigneeIds: [bob.id] })
  const before = [await read(mine), await read(lost)]
  const calls = (id: string, when: string | number) => [
    move(id, 'start', { at: when }, ada.session),
    move(id, 'finish', { at: when }, ada.session),
    fill(id, { components: { note: 'x' }, at: when }, ada.session),
    send(id, ada.session, { at: String(when) }),
  ]
  for (const when of ['2126-01-01T00:00:00Z', at(86_401), 4_000_000_000_000])
    for (const [i, answer] of (await Promise.all([...calls(mine, when), ...calls(lost, when)])).entries())
      t.match(answer, { status: 400, body: { errors: [{ path: '/at' }] } }, `${when} ${i}`)
  for (const when of ['1926-01-01T00:00:00Z', at(-8 * 86_400), 0])
    for (const [i, answer] of (await Promise.all([...calls(mine, when), ...calls(lost, when)])).entries())
      t.match(answer, { status: 409, body: { code: i < 4 ? 'conflict' : 'taken_away' } }, `${when} ${i}`)
  for (const when of ['yesterday', 'null', '', '1e3', '99999999999999999999', '\u0000'])
    t.match(await send(lost, ada.session, { at: when }), { status: 400, body: { errors: [{ path: '/at' }] } }, when)
  for (const when of ['yesterday', '', {}, [], true])
    t.equal((await fill(mine, { components: {}, at: when }, ada.session)).status, 400)
  t.same([await read(mine), await read(lost)], before)
})

test('steps that come twice or in the wrong order end as they would have in theirs', async (t) => {
  const { proof, send, move, read, ada, bob, at, clock, owner } = await openProofs(t)
  const { _id } = await proof({ assigneeIds: [ada.id] })
  const [started, taken, finished] = [at(60), at(70), at(90)]
  clock.advance(300_000)
  await move(_id, 'assign', { assigneeIds: [bob.id] })
  const finish = () => move(_id, 'finish', { at: finished }, ada.session)
  t.match(await finish(), { status: 409, body: { code: 'taken_away' } })
  t.equal((await send(_id, ada.session, { at: taken })).status, 201)
  t.match(await finish(), { status: 409, body: { code: 'taken_away' } })
  for (const times of ['once', 'again'])
    t.equal((await move(_id, 'start', { at: started }, ada.session)).status, 200, times)
  const { version } = await read(_id)
  for (const times of ['once', 'again', 'and again']) t.equal((await finish()).status, 200, times)
  t.equal((await read(_id)).version, version + 1)
  t.match(await move(_id, 'finish', { at: at(-100) }, ada.session), { status: 409 }, 'it was finished already')
  const { data } = (await owner.call('GET', `/task/${_id}/history`)).body
  t.same(
    data.map(({ type }: { type: string }) => type),
    ['created', 'assigned', 'changed', 'started', 'finished'],
  )
})

test('a clock that is behind never holds against a later change', async (t) => {
  const { proof, move, read, ada, bob, at, clock } = await openProofs(t)
  const { _id } = await proof({ assigneeIds: [ada.id] })
  const [early, exact] = [at(-60), at(0)]
  clock.advance(60_000)
  await move(_id, 'assign', { assigneeIds: [bob.id] })
  t.match(await move(_id, 'start', { at: early }, ada.session), { status: 409, body: { code: 'taken_away' } })
  t.equal((await move(_id, 'start', { at: exact }, ada.session)).status, 200)
  await move(_id, 'assign', { assigneeIds: [ada.id, bob.id] })
  t.match(await move(_id, 'start', { at: early }, ada.session), { status: 200 }, 'it is hers again')
  t.match(await read(_id), { state: 'inProgress', startedBy: ada.id })
})

test('who is helped, or left alone with a task, has started it when they did', async (t) => {
  const { proof, move, read, ada, bob, at, clock } = await openProofs(t)
  const one = (await proof({ assigneeIds: [ada.id] }))._id
  const two = (await proof({ assigneeIds: [ada.id, bob.id] }))._id
  const started = at(60)
  clock.advance(600_000)
  await move(one, 'assign', { assigneeIds: [ada.id, bob.id] })
  await move(two, 'assign', { assigneeIds: [ada.id] })
  for (const id of [one, two]) {
    t.equal((await read(id)).assignedAt, at(0))
    t.equal((await move(id, 'start', { at: started }, ada.session)).status, 200)
    t.match(await read(id), { state: 'inProgress', startedAt: started, startedBy: ada.id })
  }
})
