import { test } from 'tap'
import { openSocket } from '../support/open-socket.ts'
import { HUB, near, openRoutingWorld, PASSWORD } from '../support/routing-world.ts'
import { ask, type Json, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

test('vehicles that a planner does not see are nothing to them, without a hub too, and stay in plans that have them', async (t) => {
  const { service, hubId, send, make, tasks } = await openRoutingWorld(t)
  const permissions = ['view/task', 'edit/task', 'dispatch/task', 'view/routing', 'edit/routing']
  const roleId = (await make('/role', { name: 'Planner of routes', permissions }))._id
  const email = `limited.${process.pid}@example.com`
  await make('/user', { name: 'Lim', email, password: PASSWORD, roleId, hubId: [hubId] })
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password: PASSWORD } })
  const other = await make('/hub', { name: 'Other', ...HUB })
  const unseen = [
    await make('/vehicle', { name: 'Free', type: 'car' }),
    await make('/vehicle', { name: 'Far', type: 'car', hubId: other._id }),
  ]
  const [taskId] = await tasks([near()])
  const at = new Date().toISOString()
  const visits = [{ taskId, arrivalAt: at, departureAt: at, distanceMeters: 1 }]
  const planOf = (vehicleId: string) => ({
    ...{ hubId, source: 'external', unassigned: [] },
    routes: [{ vehicleId, distanceMeters: 1, durationSeconds: 1, visits }],
  })
  for (const { _id } of unseen) {
    const asked = { hubId, taskIds: [taskId], vehicleIds: [_id], startAt: at }
    for (const [path, body] of Object.entries({ '/routing': asked, '/routing-result': planOf(_id) })) {
      const { status, json } = await send('POST', path, body, token)
      t.equal(status, 400, path)
      t.match(json.errors, [{ message: 'names nothing in this organization' }], path)
    }
  }
  const plan = await make('/routing-result', planOf(unseen[0]._id))
  const changed = await send(
    'PATCH',
    `/routing-result/${plan._id}`,
    { routes: [{ ...plan.routes[0], distanceMeters: 2 }] },
    token,
  )
  t.equal(changed.status, 200, changed.text)
})

test('a plan that was read is written back, but for another state, which operations change', async (t) => {
  const { hubId, send, make, tasks } = await openRoutingWorld(t)
  const vehicle = await make('/vehicle', { name: 'Van', type: 'car', hubId })
  const [taskId] = await tasks([near()])
  const plan = await make('/routing-result', { hubId, routes: [{ vehicleId: vehicle._id, visits: [{ taskId }] }] })
  for (const method of ['PUT', 'PATCH']) {
    const { status, json } = await send(method, `/routing-result/${plan._id}`, { ...plan, state: 'dispatched' })
    t.equal(status, 400, method)
    t.match(json.errors, [{ path: '/state', message: /dispatch/ }], method)
  }
  const same = await send('PUT', `/routing-result/${plan._id}`, { ...plan, name: 'Monday' })
  t.match(same.json.data, { name: 'Monday', state: 'planned' })
})

test('a day is planned, dispatched, driven and compared', async (t) => {
  const receiver = await openReceiver(t)
  const { service, token, hubId, send, make, get, person, tasks, planned } = await openRoutingWorld(t)
  const ada = await person('ada')
  for (const event of ['onRoutingResultFinished', 'onRoutingResultDispatched']) {
    const details = { url: receiver.url, headers: [] }
    const rules = { fields: { 'routingResult.hubId': hubId } }
    const made = await make('/automation', {
      name: event,
      event,
      automationType: 'webhook',
      automationDetails: details,
      rules,
    })
    receiver.secrets.set(made._id, made.automationDetails.secret)
  }
  const live = await openSocket(service, 'live', token)
  live.send({ type: 'subscribe', id: 'jobs', channels: ['job'] })
  const startAt = Date.now()
  const later = (minutes: number) => new Date(startAt + minutes * 60_000).toISOString()
  const vehicle = await make('/vehicle', {
    name: 'Van',
    hubId,
    userId: ada.id,
    speed: 40,
    capacity: { boxes: 3 },
    cost: { perKm: 1 },
    tags: ['lift'],
  })
  const window = { from: later(100), to: later(140) }
  const taskIds = await tasks([
    { lat: 52.21, lng: 21, durationMinutes: 5, load: { boxes: 1 } },
    { lat: 52.22, lng: 21, durationMinutes: 5, load: { boxes: 1 }, window },
    { lat: 52.23, lng: 21, durationMinutes: 5, load: { boxes: 1 }, tags: ['lift'] },
    { lat: 52.24, lng: 21, load: { boxes: 9 } },
    { lat: 52.24, lng: 21, tags: ['cooled'] },
    {},
  ])
  const question = { hubId, taskIds, vehicleIds: [vehicle._id], startAt, steps: 2_000, seed: 3 }
  const asked = await send('POST', '/routing', question)
  t.equal(asked.status, 202)
  t.match(asked.json.data, { state: 'planning', source: 'planner', hubId, routes: [], unassigned: [] })
  t.notOk('taskIds' in asked.json.data)
  const id = asked.json.data._id
  const result = await planned(id)
  t.equal(result.state, 'planned')
  t.same(Object.fromEntries(result.unassigned.map(({ taskId, reason }: Json) => [taskIds.indexOf(taskId), reason])), {
    3: 'capacity',
    4: 'tags',
    5: 'noPlace',
  })
  const [route] = result.routes
  t.equal(route.vehicleId, vehicle._id)
  t.equal(route.visits.length, 3)
  const second = route.visits.find(({ taskId }: Json) => taskId === taskIds[1])
  t.ok(second.arrivalAt >= window.from && second.arrivalAt <= window.to)
  const meters = (0.03 * Math.PI * 6371008.8 * 2 * 1.3) / 180
  t.ok(Math.abs(route.distanceMeters - meters) < 10, `${route.distanceMeters} of ${meters}`)
  t.equal((await planned((await send('POST', '/routing', question)).json.data?._id ?? id))._id, id, 'tasks are taken')
  const taken = await send('POST', '/routing', question)
  t.equal(taken.status, 409)
  t.equal(taken.json.routingResultId, id)

  const dispatched = await send('POST', `/routing-result/${id}/dispatch`)
  t.equal(dispatched.status, 200, dispatched.text)
  t.equal(dispatched.json.data.state, 'dispatched')
  t.equal(dispatched.json.data.routes[0].userId, ada.id)
  t.equal((await send('POST', `/routing-result/${id}/dispatch`)).status, 409)
  const mine: Json[] = (await ask(service, 'GET', `/tasks?routingResultId=${id}`, { token: ada.token })).data
  t.same(new Set(mine.map(({ _id }) => _id)), new Set(route.visits.map(({ taskId }: Json) => taskId)))
  t.ok(mine.every(({ state, assigneeIds }) => state === 'assigned' && assigneeIds[0] === ada.id))
  const history = await get(`/task/${mine[0]._id}/history`)
  t.same(history.at(-1).actor, { type: 'routing', id })

  // Three minutes at each stop, two minutes of driving between them.
  const begin = Date.now() - 40 * 60_000
  const points = route.visits.flatMap(({ taskId }: Json, i: number) => {
    const lat = 52.21 + taskIds.indexOf(taskId) * 0.01
    return Array.from({ length: 30 }, (_, k) => ({
      recordedAt: begin + i * 300_000 + k * 10_000,
      lat: k <= 18 ? lat + 0.0001 : lat + 0.005,
      lng: 21,
    }))
  })
  await ask(service, 'POST', '/location-history/bulk', { token: ada.token, body: { points } })
  for (const { _id } of mine)
    for (const move of ['start', 'finish']) {
      t.not((await get(`/routing-result/${id}`)).state, 'completed')
      t.equal((await send('POST', `/task/${_id}/${move}`, {}, ada.token)).status, 200)
    }
  await until('completion', async () => (await get(`/routing-result/${id}`)).state === 'completed')
  await until(
    'the history',
    async () => (await get(`/routing-result/${id}`)).routes[0].visits[2].actualArrivalAt !== undefined,
  )
  const { visits } = (await get(`/routing-result/${id}`)).routes[0]
  for (const [i, visit] of visits.entries()) {
    t.equal(Date.parse(visit.actualArrivalAt), begin + i * 300_000)
    t.equal(Date.parse(visit.actualDepartureAt), begin + i * 300_000 + 180_000)
  }
  const [listed] = await get(`/routing-results?_id=${id}`)
  t.notOk('actualArrivalAt' in listed.routes[0].visits[0], 'a list of one leaves them out too')
  await until('both webhooks', () => receiver.deliveries.length === 2)
  t.same(receiver.bad, [])
  t.same(receiver.deliveries.map(({ body }) => body.type).sort(), [
    'onRoutingResultDispatched',
    'onRoutingResultFinished',
  ])
  t.equal(receiver.deliveries[0].body.data.routingResult._id, id)
  t.notOk('taskIds' in receiver.deliveries[0].body.data.routingResult)
  await until('the job', () => live.messages.some((message: Json) => message.event?.status === 'completed'))
  t.match(live.messages.find((message: Json) => message.event?.status === 'completed').event, {
    _id: id,
    routingResultId: id,
    routes: 1,
    unassigned: 3,
  })
  const again = await send('POST', '/routing', { ...question, taskIds: taskIds.slice(3, 4) })
  t.equal(again.status, 202, 'what was left over is free again')
})

test('what a dispatched plan left out is planned again', async (t) => {
  const { hubId, send, make, tasks, person } = await openRoutingWorld(t)
  const vehicle = await make('/vehicle', { name: 'Van', hubId, userId: (await person('ada')).id })
  const [one, left] = await tasks([near(), near()])
  const times = { arrivalAt: '2026-11-20T08:20:00Z', departureAt: '2026-11-20T08:30:00Z' }
  const plan = (visited: string[], unassigned: string[]) => ({
    hubId,
    routes: [{ vehicleId: vehicle._id, visits: visited.map((taskId) => ({ taskId, ...times })) }],
    unassigned: unassigned.map((taskId) => ({ taskId, reason: 'noRoom' })),
  })
  const { _id } = await make('/routing-result', plan([one], [left]))
  const again = async (taskId: string): Promise<number> =>
    (await send('POST', '/routing-result', plan([taskId], []))).status
  t.equal(await again(left), 409, 'while it is planned')
  t.equal((await send('POST', `/routing-result/${_id}/dispatch`)).status, 200)
  t.equal(await again(one), 409)
  t.equal(await again(left), 201)
  t.equal(await again(left), 409, 'by one')
})

test('a plan from elsewhere is checked, changed and dispatched, and its tasks are in no other', async (t) => {
  const { hubId, send, make, get, tasks } = await openRoutingWorld(t)
  const vehicle = await make('/vehicle', { name: 'Van', hubId })
  const [one, two, three] = await tasks([near(), near(), near()])
  const visit = (taskId: string) => ({ taskId, arrivalAt: '2026-11-20T08:20:00Z', departureAt: '2026-11-20T08:30:00Z' })
  const body = (...ids: string[]) => ({ hubId, routes: [{ vehicleId: vehicle._id, visits: ids.map(visit) }] })
  const made = await send('POST', '/routing-result', body(one, two))
  t.equal(made.status, 201, made.text)
  t.match(made.json.data, { state: 'planned', source: 'external', unassigned: [] })
  const { _id: id } = made.json.data
  t.match(made.json.data.routes[0].visits[0], { arrivalAt: '2026-11-20T08:20:00.000Z' })
  const refused = async (sent: Json, status: number, path?: string) => {
    const answer = await send('POST', '/routing-result', sent)
    t.equal(answer.status, status, answer.text)
    if (path !== undefined) t.equal(answer.json.errors[0].path, path)
  }
  await refused(body(two, three), 409)
  const backward = { ...visit(three), departureAt: '2026-11-20T08:10:00Z' }
  const plan = { hubId, routes: [{ vehicleId: vehicle._id, visits: [backward] }] }
  await refused(plan, 400, '/routes/0/visits/0/departureAt')
  await refused(body(three, three), 400, '/routes/0/visits/1/taskId')
  await refused(body(vehicle._id), 400, '/routes/0/visits/0/taskId')
  await refused({ hubId, routes: [{ vehicleId: one, visits: [] }] }, 400, '/routes/0/vehicleId')
  await refused({ ...body(three), source: 'planner' }, 400, '/source')
  await refused({ ...body(three), hubId: one }, 400)
  const both = await Promise.all([
    send('POST', '/routing-result', body(three)),
    send('POST', '/routing-result', body(three)),
  ])
  t.same(both.map(({ status }) => status).sort(), [201, 409], 'of two at once one has the task')
  const won = both.find(({ status }) => status === 201)?.json.data._id
  t.equal((await send('DELETE', `/routing-result/${won}`)).status, 200)
  t.equal((await send('PATCH', `/routing-result/${id}`, { name: 'Monday', ...body(two, three) })).status, 200)
  const read = await get(`/routing-result/${id}`)
  t.equal((await send('PUT', `/routing-result/${id}`, read)).status, 200, 'what was read can be written back')
  t.same(
    (await get(`/routing-results?taskId=${three}`)).map(({ _id }: Json) => _id),
    [id],
  )
  t.same(await get(`/routing-results?taskId=${one}`), [])
  const without = await send('POST', `/routing-result/${id}/dispatch`)
  t.equal(without.status, 409)
  t.match(without.json.errors, [{ path: '/routes/0', message: 'has a vehicle without a user' }])
  t.equal((await send('POST', `/routing-result/${id}/stop`)).status, 409)
})

test('bad questions are answered with what is wrong, and a large one is stopped with its best plan', async (t) => {
  const { hubId, send, make, tasks, planned, service, token } = await openRoutingWorld(t)
  const vehicles = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      make('/vehicle', { name: `Van ${i}`, hubId, workingHours: { from: '00:00', to: '23:59' } }),
    ),
  )
  const vehicleIds = vehicles.map(({ _id }) => _id)
  const ids = await tasks(Array.from({ length: 300 }, () => ({ ...near(), durationMinutes: 5 })))
  const question = { hubId, taskIds: ids, vehicleIds, startAt: '2026-11-20T00:00:00Z', seconds: 60 }
  const refused = async (change: Json, path: string) => {
    const answer = await send('POST', '/routing', { ...question, ...change })
    t.equal(answer.status, 400, answer.text.slice(0, 200))
    t.equal(answer.json.errors[0].path, path)
  }
  await refused({ taskIds: Array.from({ length: 10_000 }, (_, i) => ids[i % 300]) }, '/taskIds')
  await refused({ taskIds: [] }, '/taskIds')
  await refused({ taskIds: [ids[0], hubId] }, '/taskIds/1')
  await refused({ vehicleIds: [ids[0]] }, '/vehicleIds/0')
  await refused({ hubId: ids[0] }, '/hubId')
  await refused({ seconds: 61 }, '/seconds')
  await refused({ steps: 300 }, '/steps')
  await refused({ startAt: 'soon' }, '/startAt')
  const asked = await send('POST', '/routing', question)
  t.equal(asked.status, 202, asked.text)
  const id = asked.json.data._id
  const job = await openSocket(service, 'live', token)
  job.send({ type: 'subscribe', id: 'jobs', channels: ['job'] })
  await until('progress', () =>
    job.messages.some(({ event }: Json) => event?.status === 'processing' && event.processed > 0),
  )
  const begun = performance.now()
  const stopped = await send('POST', `/routing-result/${id}/stop`)
  t.equal(stopped.status, 200, stopped.text)
  t.equal(stopped.json.data.state, 'planned')
  t.ok(performance.now() - begun < 30_000)
  const result = await planned(id)
  t.equal(result.routes.flatMap(({ visits }: Json) => visits).length + result.unassigned.length, 300)
  t.equal((await send('DELETE', `/routing-result/${id}/planning`)).status, 200, 'it has ended already')
  t.equal((await send('DELETE', `/routing-result/${id}`)).status, 200)
  const later = await send('POST', '/routing', question)
  t.equal(later.status, 202)
  t.equal((await send('DELETE', `/routing-result/${later.json.data._id}`)).status, 200, 'deleting ends the planning')
  const { seconds: _seconds, ...unbounded } = question
  const small = { ...unbounded, taskIds: ids.slice(0, 40), steps: 300, seed: 5 }
  const first = await planned((await send('POST', '/routing', small)).json.data._id)
  await send('DELETE', `/routing-result/${first._id}`)
  const same = await planned((await send('POST', '/routing', small)).json.data._id)
  t.same(same.routes, first.routes, 'the same seed and steps make the same plan')
})
