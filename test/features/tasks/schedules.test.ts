import { test } from 'tap'
import { ScheduledTasks } from '../../../src/reactors/schedules/make-tasks.ts'
import { openIdentity } from '../../support/open-identity.ts'
import { openTasks } from '../../support/open-tasks.ts'
import { until } from '../../support/service.ts'

test('a repeat of many schedules at once makes each once, wherever the first request was cut short', async (t) => {
  const { call, body } = await (await openIdentity(t)).signup()
  const flowId = (await call('GET', '/flows?key=visit')).body.data[0]._id
  const schedules = Array.from({ length: 6 }, (_, i) => ({
    name: `Round ${i}`,
    flowId,
    rrule: 'FREQ=DAILY',
    timeZone: i === 1 ? 'Mars/Olympus' : 'UTC',
    startTime: '2026-01-01T00:00:00Z',
    task: { title: 'Round', hubId: body.data.hubId[0] },
    isActive: false,
  }))
  const send = (count: number) =>
    call('POST', '/task/schedules/bulk', { schedules: schedules.slice(0, count) }, { seed: Buffer.alloc(32, 7) })
  t.equal((await send(4)).body.data.created, 3)
  t.match((await send(6)).body.data, { created: 5, rejected: [{ index: 1 }] })
  const { data } = (await call('GET', '/task/schedules?sortBy=name')).body
  t.same(
    data.map(({ name }: { name: string }) => name),
    schedules.filter((_, i) => i !== 1).map(({ name }) => name),
  )
})

test('a schedule of every minute makes a task each minute', async (t) => {
  const world = await openIdentity(t)
  const { call, body } = await world.signup()
  const flowId = (await call('GET', '/flows?key=visit')).body.data[0]._id
  const made = await call('POST', '/task/schedule', {
    name: 'Round',
    flowId,
    rrule: 'FREQ=MINUTELY',
    timeZone: 'UTC',
    startTime: new Date(world.clock.now()).toISOString(),
    task: { title: 'Round', hubId: body.data.hubId[0] },
  })
  t.equal(made.status, 201, 'a rule of RFC 5545')
  world.clock.advance(3 * 60_000)
  const jobs = new ScheduledTasks({ ...world, processes: world.runs }).start()
  await jobs.idle()
  await jobs.close()
  const tasks = async () => (await call('GET', '/tasks?q=Round&sortBy=dueAt&sortOrder=asc')).body.data
  await until('its tasks to be listed', async () => (await tasks()).length >= 3)
  const dues = (await tasks()).map(({ dueAt }: { dueAt: string }) => Date.parse(dueAt))
  t.ok(dues.slice(1).every((at: number, i: number) => at - dues[i] === 60_000))
})

test('a schedule makes each task once, also after a time when nothing ran', { timeout: 900_000 }, async (t) => {
  const world = await openIdentity(t)
  const { signup, clock } = world
  let session = await signup()
  const { body } = session
  const call: typeof session.call = (...asked) => session.call(...asked)
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    session = await world.login(session.email)
  }
  const flowId = (await call('GET', '/flows?key=visit')).body.data[0]._id
  const [hubId] = body.data.hubId
  const of = (more: object = {}) => ({
    name: 'Round',
    flowId,
    repeat: { period: 'daily', at: '08:00' },
    timeZone: 'UTC',
    startTime: '2026-01-01T00:00:00Z',
    task: { title: 'Round', hubId, window: { afterMinutes: 30, lengthMinutes: 60 }, leadMinutes: 60 },
    ...more,
  })
  const made = await call('POST', '/task/schedule', of())
  t.match(made, {
    status: 201,
    body: { data: { nextAt: '2026-01-01T08:00:00.000Z', task: { hubId, title: 'Round' }, isActive: true } },
  })
  const { _id } = made.body.data
  t.same((await call('GET', `/task/schedule/${_id}/preview?count=2`)).body.data, [
    '2026-01-01T08:00:00.000Z',
    '2026-01-02T08:00:00.000Z',
  ])
  const refused = async (more: object, path: string) =>
    t.match(await call('POST', '/task/schedule', of(more)), { status: 400, body: { errors: [{ path }] } }, path)
  await refused({ repeat: undefined, rrule: 'FREQ=SECONDLY' }, '/rrule')
  await refused({ repeat: undefined }, '/rrule')
  const both = await call('POST', '/task/schedule', of({ rrule: 'FREQ=DAILY' }))
  t.match(both, { status: 400, body: { errors: [{ path: '/rrule', message: /^must not stand beside repeat/ }] } })
  await refused({ timeZone: 'Mars/Olympus' }, '/timeZone')
  for (const moment of [1e308, 2 ** 53, 253_402_300_800_000, '9999-12-31T23:59:59-23:59'])
    await refused({ startTime: moment }, '/startTime')
  await refused({ endTime: '2025-12-31T00:00:00Z' }, '/endTime')
  await refused({ flowId: hubId }, '/flowId')
  const bulk = await call('POST', '/task/schedules/bulk', {
    schedules: [of({ isActive: false }), of({ flowId: hubId }), { name: 'Nothing else' }, 5],
  })
  t.match(bulk.body.data, {
    created: 1,
    rejected: [
      { index: 1, code: 'invalid', message: /flowId/ },
      { index: 2, code: 'invalid', message: /required/ },
      { index: 3, code: 'invalid', message: /object/ },
    ],
  })
  const task = of().task
  await refused({ task: { ...task, components: { nothing: 1 } } }, '/task/components/nothing')
  await refused({ task: { ...task, components: { nextVisit: 'soon' } } }, '/task/components/nextVisit')
  await refused({ task: { ...task, lat: 1 } }, '/task/lng')
  const other = (await call('POST', '/hub', { name: 'Other', lat: 1, lng: 1 })).body.data._id
  const teamId = (await call('POST', '/team', { name: 'Others', hubId: other, userIds: [] })).body.data._id
  await refused({ task: { ...task, teamId } }, '/task/teamId')
  const team = (await call('POST', '/team', { name: 'Own', hubId, userIds: [body.data._id] })).body.data._id
  const paused = of({ isActive: false, task: { ...task, teamId: team, assigneeIds: [body.data._id] } })
  const manned = (await call('POST', '/task/schedule', paused)).body.data
  t.match(manned.task, { teamId: team, assigneeIds: [body.data._id] })
  for (const [query, total] of [
    [`hubId=${other},${hubId}`, 2],
    [`hubId=${other}`, 0],
    [`teamId=${team.toUpperCase()}`, 1],
    ['teamId=null', 1],
    ['assigneeId=me', 1],
    [`assigneeId=null,${hubId}`, 1],
  ] as const)
    t.equal((await call('GET', `/task/schedules?isActive=false&${query}`)).body.total, total, query)
  for (const name of ['hubId', 'teamId', 'assigneeId'])
    t.match(
      await call('GET', `/task/schedules?${name}=${hubId},north`),
      { status: 400, body: { errors: [{ path: `/${name}` }] } },
      'no id',
    )
  const amended = await call('PATCH', `/task/schedule/${manned._id}`, { task: { teamId: null, title: 'Other' } })
  t.same(
    amended.body.data.task,
    { ...task, title: 'Other', assigneeIds: [body.data._id] },
    'a patch takes the team out',
  )
  const replaced = await call('PUT', `/task/schedule/${manned._id}`, of({ isActive: false }))
  t.same(replaced.body.data.task, { ...task, assigneeIds: [] }, 'and a PUT whom it does not name')
  await call('DELETE', `/task/schedule/${manned._id}`)
  const totalOf = async (query: string) => (await call('GET', `/task/schedules?${query}`)).body.total
  t.same([await totalOf(`hubId=${hubId}`), await totalOf(`hubId=${other}`)], [2, 0])

  const total = async (): Promise<number> => (await call('GET', `/tasks?scheduleId=${_id}`)).body.total
  const run = async (expected: number): Promise<void> => {
    const jobs = new ScheduledTasks({ ...world, processes: world.runs }).start()
    await jobs.idle()
    await jobs.close()
    await until(`${expected} tasks to be listed`, async () => (await total()) === expected)
  }
  await run(0)
  await pass(7 * 3_600_000)
  await run(1)
  await run(1)
  await pass(3 * 86_400_000)
  await run(4)
  const tasks = (await call('GET', `/tasks?scheduleId=${_id}&sortBy=dueAt`)).body.data
  t.match(tasks[0], {
    dueAt: '2026-01-01T08:00:00.000Z',
    window: { from: '2026-01-01T08:30:00.000Z', to: '2026-01-01T09:30:00.000Z' },
    createdBy: { type: 'schedule', id: _id },
    state: 'new',
  })
  t.match(await call('DELETE', `/flow/${flowId}`), { status: 409 }, 'a schedule needs it')
  t.equal((await call('PATCH', `/task/schedule/${_id}`, { isActive: false })).status, 200)
  await pass(5 * 86_400_000)
  await run(4)
  t.match(
    (await call('PATCH', `/task/schedule/${_id}`, { isActive: true })).body.data,
    { nextAt: '2026-01-09T08:00:00.000Z' },
    'it goes on from now',
  )
})

test('one due task that cannot be made is told on its schedule, and keeps none of the others', {
  timeout: 900_000,
}, async (t) => {
  const world = await openIdentity(t)
  const { signup, clock, login } = world
  const { call, body, email } = await signup()
  const [hubId] = body.data.hubId
  const flows = (await call('GET', '/flows')).body.data
  const make = async (flowId: string): Promise<string> =>
    (
      await call('POST', '/task/schedule', {
        name: flowId,
        flowId,
        repeat: { period: 'daily', at: '08:00' },
        timeZone: 'UTC',
        startTime: '2026-01-01T00:00:00Z',
        task: { title: 'Round', hubId },
      })
    ).body.data._id
  const [idle, busy] = [await make(flows[0]._id), await make(flows[1]._id)]
  t.equal((await call('PATCH', `/flow/${flows[0]._id}`, { isActive: false })).status, 200)
  const run = async (days: number) => {
    clock.advance(days * 86_400_000)
    const jobs = new ScheduledTasks({ ...world, processes: world.runs }).start()
    await jobs.idle()
    await jobs.close()
    return login(email)
  }
  const later = await run(1)
  const shown = async (id: string, session = later) => (await session.call('GET', `/task/schedule/${id}`)).body.data
  await until('the notice', async () => (await shown(idle)).notice !== undefined)
  t.match((await shown(idle)).notice, /2026-01-01T08:00:00.000Z.*flowId/)
  await until('the other task', async () => (await later.call('GET', `/tasks?scheduleId=${busy}`)).body.total === 1)
  t.equal((await shown(busy)).notice, undefined)
  t.equal((await later.call('GET', `/tasks?scheduleId=${idle}`)).body.total, 0)
  t.equal((await later.call('PATCH', `/flow/${flows[0]._id}`, { isActive: true })).status, 200)
  const last = await run(1)
  await until('its task', async () => (await last.call('GET', `/tasks?scheduleId=${idle}`)).body.total === 1)
  t.equal((await shown(idle, last)).notice, undefined, 'it is gone with the next task')
})

test('an assignee whose hub is taken keeps nobody else from the task', { timeout: 900_000 }, async (t) => {
  const world = await openTasks(t)
  const { owner, clock, login, make, flow, hubId, other, ada, bob } = world
  const team = await make('/team', { name: 'T', hubId: other, userIds: [bob.id] })
  const repeat = { period: 'daily', at: '08:00' }
  const task = { title: 'Round', hubId, assigneeIds: [ada.id, bob.id] }
  const base = { flowId: flow._id, repeat, timeZone: 'UTC', startTime: '2026-01-01T00:00:00Z' }
  const { _id } = await make('/task/schedule', { ...base, name: 'Both', task })
  const alone = await make('/task/schedule', { ...base, name: 'Alone', task: { ...task, assigneeIds: [ada.id] } })
  const inTeam = { title: 'Team', hubId: other, teamId: team._id, assigneeIds: [bob.id] }
  const teams = await make('/task/schedule', { ...base, name: 'Team', task: inTeam })
  t.equal((await owner.call('PATCH', `/user/${ada.id}`, { hubId: [other] })).status, 200)
  t.equal((await owner.call('PATCH', `/team/${team._id}`, { userIds: [] })).status, 200)
  const run = async () => {
    clock.advance(86_400_000)
    const jobs = new ScheduledTasks({ ...world, processes: world.runs }).start()
    await jobs.idle()
    await jobs.close()
    return login(owner.email)
  }
  const later = await run()
  const made = async (id: string) => (await later.call('GET', `/tasks?scheduleId=${id}&sortBy=dueAt`)).body.data
  const told = async (id: string) => (await later.call('GET', `/task/schedule/${id}`)).body.data.notice
  await until('the tasks', async () =>
    (await Promise.all([_id, alone._id, teams._id].map(made))).every(({ length }) => length === 1),
  )
  t.match(await made(_id), [{ state: 'assigned', assigneeIds: [bob.id] }])
  t.match(await made(alone._id), [{ state: 'new', assigneeIds: [] }])
  t.match(await made(teams._id), [{ state: 'assigned', teamId: team._id, assigneeIds: [] }])
  await until('the notices', async () => (await told(_id)) !== undefined && (await told(teams._id)) !== undefined)
  t.match(await told(_id), `user ${ada.id}`)
  t.match(await told(teams._id), `user ${bob.id}`)
  t.equal((await later.call('PATCH', `/user/${ada.id}`, { hubId: [hubId, other] })).status, 200)
  const last = await run()
  const second = async () => (await last.call('GET', `/tasks?scheduleId=${_id}&sortBy=dueAt`)).body.data[1]
  await until('the next task', async () => (await second()) !== undefined)
  t.same((await second()).assigneeIds, [ada.id, bob.id], 'who has the hub again is there again')
})

test('over two years each task of a schedule is made once, although two processes make it and one ends at any moment', {
  timeout: 900_000,
}, async (t) => {
  const world = await openIdentity(t)
  const { signup, clock, login } = world
  const { call, body, email } = await signup()
  const flowId = (await call('GET', '/flows?key=visit')).body.data[0]._id
  const made = await call('POST', '/task/schedule', {
    name: 'Night round',
    flowId,
    repeat: { period: 'weekly', weekdays: ['sun', 'wed'], at: '02:30' },
    timeZone: 'Europe/Warsaw',
    startTime: '2026-01-01T00:00:00Z',
    task: { title: 'Round', hubId: body.data.hubId[0] },
  })
  const { _id } = made.body.data
  const open = () => new ScheduledTasks({ ...world, processes: world.runs }).start()
  let [one, other] = [open(), open()]
  for (let week = 0; week < 105; week++) {
    clock.advance(7 * 86_400_000)
    if (week % 3 === 0) {
      const ending = week % 2 === 0 ? one.close() : other.close()
      if (week % 2 === 0) one = open()
      else other = open()
      await ending
    }
    await Promise.all([one.idle(), other.idle()])
  }
  await Promise.all([one.close(), other.close()])
  const last = open()
  await last.idle()
  await last.close()
  const session = await login(email)
  const all: string[] = []
  const expected = 210
  await until('all tasks', async () => (await session.call('GET', `/tasks?scheduleId=${_id}`)).body.total >= expected)
  let cursor = ''
  do {
    const page = (await session.call('GET', `/tasks?scheduleId=${_id}&limit=100&sortBy=dueAt${cursor}`)).body
    all.push(...page.data.map(({ dueAt }: { dueAt: string }) => dueAt))
    cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
  } while (cursor !== '')
  t.equal(new Set(all).size, all.length, 'none twice')
  t.equal(all.length, expected)
  for (const dueAt of ['2026-03-29T01:00:00.000Z', '2026-10-25T00:30:00.000Z', '2027-03-28T01:00:00.000Z'])
    t.ok(all.includes(dueAt), dueAt)
})
