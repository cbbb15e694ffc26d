import { test, type Test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { role } from '../../../src/features/identity/users/role.ts'
import { user } from '../../../src/features/identity/users/user.ts'
import { ORGANIZATIONS_TABLE } from '../../../src/features/identity/views.ts'
import { routingResult } from '../../../src/features/routing/result.ts'
import { RoutingWriter } from '../../../src/features/routing/routing-writer.ts'
import { ROUTING_RESULT, ROUTING_RESULT_STREAMS } from '../../../src/features/routing/views.ts'
import { team } from '../../../src/features/teams/team.ts'
import { task } from '../../../src/features/tasks/task.ts'
import { vehicle } from '../../../src/features/vehicles/vehicle.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { eventTypes } from '../../../src/kit/commands/declared-event.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { LATE_WRITES_MS } from '../../../src/kit/resource/writes.ts'
import { leaveRoutes } from '../../../src/reactors/routing/leave-routes.ts'
import { planWork } from '../../../src/reactors/routing/plan-routes.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

const AT = '2026-01-01T00:00:00.000Z'
const HUB = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'

const opened = async (t: Test, resources: Parameters<typeof directory>[0]) => {
  const services = await openServices(folderOf(t), new FakeClock(), [routingResult, vehicle, hub, user, role, team])
  const { runner, settle } = await startProjections(services, [directory(resources)])
  t.teardown(() => services.close())
  t.teardown(() => runner.close())
  const ids = idSource(services.clock.now())
  const append = (stream: string, type: string, values: JsonObject) => {
    const data = encodeJson({ organizationId: 'o', values, createdAt: AT, at: AT })
    const event = { id: ids.next(), type, isJson: true, data, metadata: { organizationId: 'o' } }
    return services.log.append(stream, [event], 'any')
  }
  return { services, settle, ids, append }
}

test('a vehicle that is deleted while its routes are planned has none', async (t) => {
  const { services, settle, ids, append } = await opened(t, [routingResult.rows, vehicle.rows, task.rows, hub.rows])
  await services.tables.declare({ name: ORGANIZATIONS_TABLE, version: 1 })
  const [id, van, taskId, userId] = Array.from({ length: 4 }, () => ids.next())
  const own = { name: 'Van', hubId: HUB, capacity: {}, breaks: [], tags: [], constraints: {} }
  const asked = { hubId: HUB, userId, vehicleIds: [van], startAt: 0, returnToHub: true, seconds: 1, steps: 1, seed: 1 }
  const values = { hubId: HUB, source: 'planner', routes: [], unassigned: [], taskIds: [taskId], state: 'planning' }
  await append(`hub-${HUB}`, eventTypes('hub').created, { name: 'H', lat: 52, lng: 21 })
  await append(`vehicle-${van}`, eventTypes('vehicle').created, own)
  const work = { flowId: HUB, title: 'T', hubId: HUB, assigneeIds: [], tags: [], components: {}, flowVersion: 1 }
  await append(`task-${taskId}`, eventTypes('task').created, { ...work, lat: 52, lng: 21, state: 'new' })
  const made = await append(ROUTING_RESULT_STREAMS + id, ROUTING_RESULT.created, values)
  await settle({ position: made.position, types: [ROUTING_RESULT.created] }, 60_000)
  /** Its question comes between the reading of the vehicles and the plan. */
  const table = async (): Promise<undefined> => {
    const type = eventTypes('vehicle').deleted
    const { position } = await append(`vehicle-${van}`, type, own)
    await settle({ position, types: [type] }, 60_000)
  }
  const run = {
    ...{ id, attempt: 1, signal: new AbortController().signal, progress: async () => undefined },
    asked: { ...asked, organizationId: 'o', taskIds: [taskId], at: 0 },
  }
  await planWork({ ...services, travelTimes: { table } as never }).run(run as never)
  t.match(await new RoutingWriter(services).load('o', id), {
    state: 'planned',
    routes: [],
    unassigned: [{ taskId, reason: 'noVehicle' }],
  })
})

test('deleted vehicles and users leave the routes that are planned, and no others', async (t) => {
  const { services, settle, ids, append } = await opened(t, [routingResult.rows, vehicle.rows, user.rows])
  const [van, truck, ada, bob, one, two] = Array.from({ length: 6 }, () => ids.next())
  const planIn = async (state: string): Promise<string> => {
    const id = ids.next()
    const routes = [
      { vehicleId: van, userId: ada, visits: [{ taskId: one }] },
      { vehicleId: truck, userId: bob, visits: [{ taskId: two }] },
    ]
    const values = { hubId: HUB, source: 'external', routes, unassigned: [], taskIds: [one, two], state }
    await append(ROUTING_RESULT_STREAMS + id, ROUTING_RESULT.created, values)
    return id
  }
  const planned = await planIn('planned')
  const dispatched = await planIn('dispatched')
  const named = { name: 'V', hubId: HUB }
  await append(`vehicle-${van}`, eventTypes('vehicle').created, named)
  const follower = leaveRoutes({ ...services, settle })
  t.teardown(() => follower.close())
  await follower.ready()
  await append(`vehicle-${van}`, eventTypes('vehicle').deleted, named)
  const writer = new RoutingWriter(services)
  const routesOf = async (id: string) => (await writer.load('o', id))?.routes
  await until('the vehicle has left', async () => (await routesOf(planned))?.length === 1)
  t.match(await writer.load('o', planned), {
    state: 'planned',
    routes: [{ vehicleId: truck, userId: bob }],
    unassigned: [{ taskId: one, reason: 'noVehicle' }],
    taskIds: [one, two],
  })
  await append(`user-${bob}`, eventTypes('user').deleted, { name: 'Bob', hubId: [HUB] })
  await until('the user has left', async () => {
    services.clock.advance(LATE_WRITES_MS)
    return (await routesOf(planned))?.[0].userId === undefined
  })
  t.match(await routesOf(planned), [{ vehicleId: truck, visits: [{ taskId: two }] }])
  t.match(await routesOf(dispatched), [
    { vehicleId: van, userId: ada },
    { vehicleId: truck, userId: bob },
  ])
})
