import { join } from 'node:path'
import { test } from 'tap'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { furtherSession, openApiWorld, type ApiWorld } from '../support/api-world.ts'
import { callOnce, LEADS_ELSEWHERE } from '../support/each-route.ts'
import { folderOf } from '../support/folder-of.ts'
import { operationsOf, type Operation } from '../support/open-api.ts'
import { ask, call, startService, type Service } from '../support/service.ts'
import { DATA_WALKS } from './walks-of-data.ts'
import { HUB_WALKS } from './walks-of-hubs.ts'
import { ROUTE_WALKS } from './walks-of-routes.ts'
import { SECOND_FACTOR_WALKS } from './walks-of-second-factors.ts'
import { WALKED_ELSEWHERE, WALKS } from './walks.ts'

/** A trace context that says which operation it belongs to: every event of a command carries that of its request. */
const traceOf = (index: number): string => `00-${String(index + 1).padStart(32, '0')}-00000000000000aa-01`

/** Has everything name something, right before it is deleted. */
const link = async (service: Service, { token, ids }: ApiWorld): Promise<void> => {
  const { hubId, userId, teamId, vehicleId, trackerId } = ids
  await ask(service, 'PATCH', `/vehicle/${vehicleId}`, { token, body: { userId } })
  await ask(service, 'PATCH', `/tracker/${trackerId}`, { token, body: { hubId, teamId, vehicleId, userId } })
}

/** Calls with more than the documents' examples what then writes more. */
const callWithMore = async (
  service: Service,
  { token, ids, password }: ApiWorld,
  traceFor: (operationId: string) => { [name: string]: string },
): Promise<void> => {
  const { hubId, userId, teamId, geofenceGroupId } = ids
  const send = (operationId: string, method: string, path: string, body?: object) =>
    ask(service, method, path, { token, body, headers: traceFor(operationId) })
  const role = (await send('createRole', 'POST', '/role', { name: 'Leaving', permissions: [] })).data._id
  await send('amendUser', 'PATCH', `/user/${userId}`, { roleId: role, password })
  await send('deleteRole', 'DELETE', `/role/${role}?replaceWith=${ids.roleId}`)
  const planner = { name: 'Planner', email: ids.email, roleId: ids.roleId, hubId: [hubId], teamIds: [teamId], password }
  await send('replaceUser', 'PUT', `/user/${userId}`, planner)
  await send('amendOwnUser', 'PATCH', '/user', { name: 'Myself', password, currentPassword: password })
  const yard = (name: string, lng: number) => ({
    type: 'Feature',
    properties: { name },
    geometry: {
      type: 'Polygon',
      coordinates: [
        [
          [lng, 1],
          [lng + 1, 1],
          [lng, 2],
          [lng, 1],
        ],
      ],
    },
  })
  const yards = (await send('createRole', 'POST', '/role', { name: 'Yards', permissions: ['edit/hub'] })).data._id
  const keeper = { name: 'Keeper', email: 'keeper@example.com', password, roleId: yards, hubId: [hubId] }
  await ask(service, 'POST', '/user', { token, body: keeper })
  const own = await ask(service, 'POST', '/auth/login', { body: { email: keeper.email, password } })
  const body = { name: 'Yard', lat: 1, lng: 1 }
  await ask(service, 'POST', '/hub', { token: own.token, body, headers: traceFor('createHub') })
  await send('amendDataType', 'PATCH', `/data-type/${ids.dataTypeId}`, { name: 'Clients' })
  await send('amendData', 'PATCH', `/data/${ids.dataId}`, { values: { number: 'C-9' } })
  await send('importGeofences', 'POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}&nameProperty=name`, {
    type: 'FeatureCollection',
    features: [yard('One', 1), yard('Two', 3)],
  })
}

/** The streams that each operation appended to, as its events say. */
const streamsOf = async (folder: string, operations: readonly Operation[]): Promise<Map<string, Set<string>>> => {
  const log = await openLmdbEventLog({ path: join(folder, 'log'), clock: systemClock })
  const idOf = new Map(operations.map(({ operationId }, i) => [traceOf(i), operationId]))
  const streams = new Map<string, Set<string>>()
  const end = new AbortController()
  for await (const { events, caughtUp } of log.follow({ prefixes: [''] }, undefined, end.signal)) {
    for (const { stream, metadata } of events) {
      const operationId = idOf.get(metadata.traceparent ?? '')
      if (operationId === undefined) continue
      streams.set(operationId, (streams.get(operationId) ?? new Set()).add(stream))
    }
    if (caughtUp) break
  }
  end.abort()
  await log.close()
  return streams
}

test('every command that writes several streams has its place in the walk', { timeout: 900_000 }, async (t) => {
  const folder = folderOf(t)
  const service = await startService(folder, ['--webhook-schedule', '20ms'], 0, 'dist/test/support/few-points-child.js')
  t.teardown(() => service.kill())
  const operations = operationsOf((await call(service, 'GET', '//openapi.json')).json)
  const traceFor = (operationId: string) => ({
    traceparent: traceOf(operations.findIndex((operation) => operation.operationId === operationId)),
  })
  const world = await openApiWorld(service)
  await callWithMore(service, world, traceFor)
  // The new password has ended the spare one.
  world.spare.sessionId = await furtherSession(service, world.email, world.password)
  const isDelete = ({ method }: Operation): boolean => method === 'DELETE'
  const callEach = async (these: readonly Operation[]): Promise<void> => {
    for (const operation of these.filter(({ operationId }) => !LEADS_ELSEWHERE.includes(operationId))) {
      const answer = await callOnce(service, world, operation, traceFor(operation.operationId))
      t.ok(answer.status < 300, `${operation.operationId} answers ${answer.status}`)
    }
  }
  await callEach(operations.filter((one) => !isDelete(one)))
  await link(service, world)
  await callEach(operations.filter(isDelete))
  await service.stop()

  const several: string[] = []
  for (const [operationId, streams] of await streamsOf(folder, operations))
    if (streams.size > 1) several.push(operationId)
  const walked = [
    ...[...WALKS, ...DATA_WALKS, ...SECOND_FACTOR_WALKS, ...HUB_WALKS, ...ROUTE_WALKS].map(
      ({ operationId }) => operationId,
    ),
    ...WALKED_ELSEWHERE,
  ]
  t.same(
    several.sort(),
    [...new Set(walked)].sort(),
    'those that write several streams are those that test/processes/walks.ts kills between its appends',
  )
})
