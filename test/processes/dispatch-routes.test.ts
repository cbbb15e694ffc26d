import { test, type Test } from 'tap'
import { DISPATCH_ROUTES, type DispatchData } from '../../src/features/routing/processes.ts'
import { hub } from '../../src/features/hubs/hub.ts'
import { routingResult } from '../../src/features/routing/result.ts'
import { RoutingWriter } from '../../src/features/routing/routing-writer.ts'
import { ROUTING_RESULT, ROUTING_RESULT_STREAMS } from '../../src/features/routing/views.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import { PROCESS, processStream } from '../../src/kit/commands/process.ts'
import { dispatchRoutes } from '../../src/processes/dispatch-routes.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices } from '../support/open-services.ts'

const HUB = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'
const AT = '2026-01-01T00:00:00.000Z'

/** Planned routes of two vehicles, and a dispatch that a process began before it died. */
const begun = async (t: Test, dispatchOf: (vehicleIds: string[]) => DispatchData['routes']) => {
  const services = await openServices(folderOf(t), new FakeClock(), [routingResult, hub])
  t.teardown(() => services.close())
  services.processes.know([dispatchRoutes(services)])
  const { log, clock } = services
  const ids = idSource(clock.now())
  const metadata = { organizationId: 'o' }
  const [id, van, truck] = [ids.next(), ids.next(), ids.next()]
  const routes = [van, truck].map((vehicleId) => ({ vehicleId, visits: [{ taskId: ids.next() }] }))
  const taskIds = routes.flatMap(({ visits }) => visits.map(({ taskId }) => taskId))
  const values = { hubId: HUB, source: 'external', routes, unassigned: [], taskIds, state: 'planned' }
  const made = { type: ROUTING_RESULT.created, data: { organizationId: 'o', values, createdAt: AT, at: AT } }
  await appendFacts(log, ROUTING_RESULT_STREAMS + id, [made], [ids.next()], 0, metadata)
  const data: DispatchData = { routingResultId: id, routes: dispatchOf([van, truck]) }
  const started = { process: DISPATCH_ROUTES.name, organizationId: 'o', data, at: clock.now() }
  await appendFacts(log, processStream(id), [{ type: PROCESS.started, data: started }], [ids.next()], 0, metadata)
  const origin = { organizationId: 'o', now: clock.now(), ids, metadata }
  return { services, writer: new RoutingWriter(services), origin, id, van, truck }
}

const ADA = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'
const BOB = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b'

test('routes that are being dispatched are not changed, by whoever', async (t) => {
  const both = (vehicleIds: string[]) =>
    vehicleIds.map((vehicleId, i) => ({ vehicleId, userId: [ADA, BOB][i], taskIds: [] }))
  const { writer, origin, id } = await begun(t, both)
  await t.rejects(writer.change(origin, { id, kind: 'amend', body: { routes: [] } }), {
    code: 'conflict',
    message: /that are dispatched cannot be changed/,
  })
  t.match(await writer.load('o', id), { state: 'dispatched', routes: [{ userId: ADA }, { userId: BOB }] })
})

test('a deletion waits for a dispatch that is under way', async (t) => {
  const { writer, origin, id, services } = await begun(t, () => [])
  await writer.delete(origin, { id })
  const types = (await services.log.read(ROUTING_RESULT_STREAMS + id, 0, 10)).map(({ type }) => type)
  t.same(types, [ROUTING_RESULT.created, ROUTING_RESULT.changed, ROUTING_RESULT.deleted])
})

test('a route that came at the very moment of the dispatch has nobody, and each other one its own user', async (t) => {
  const { services, writer, id } = await begun(t, ([, truck]) => [{ vehicleId: truck, userId: BOB, taskIds: [] }])
  await services.processes.settle(id)
  const dispatched = await writer.load('o', id)
  t.equal(dispatched?.state, 'dispatched')
  t.same(
    dispatched?.routes.map(({ userId }) => userId),
    [undefined, BOB],
  )
})

test('a dispatch that an earlier version began names no vehicles: its routes are taken by their order', async (t) => {
  const { services, writer, id } = await begun(t, () => [{ userId: ADA, taskIds: [] }])
  await services.processes.settle(id)
  t.same(
    (await writer.load('o', id))?.routes.map(({ userId }) => userId),
    [ADA, undefined],
  )
})
