import { test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { routingResult } from '../../../src/features/routing/result.ts'
import { RoutingWriter } from '../../../src/features/routing/routing-writer.ts'
import { ROUTING_RESULT, ROUTING_RESULT_STREAMS } from '../../../src/features/routing/views.ts'
import { task } from '../../../src/features/tasks/task.ts'
import { TASK, TASK_STREAMS } from '../../../src/features/tasks/views.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { completeResults } from '../../../src/reactors/routing/complete-results.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

const AT = '2026-01-01T00:00:00.000Z'
const HUB = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'

test('a plan is completed whose last task ended while it was being dispatched, and no other is', async (t) => {
  const services = await openServices(folderOf(t), new FakeClock(), [routingResult, hub])
  const { runner, settle } = await startProjections(services, [directory([routingResult.rows, task.rows])])
  t.teardown(() => services.close())
  t.teardown(() => runner.close())
  const { log, clock } = services
  const ids = idSource(clock.now())
  const append = (stream: string, type: string, values: JsonObject) => {
    const data = encodeJson({ organizationId: 'o', values, createdAt: AT, at: AT })
    return log.append(stream, [{ id: ids.next(), type, isJson: true, data, metadata: { organizationId: 'o' } }], 'any')
  }
  /** A dispatch of one task, which is `state` before its plan is dispatched. */
  const dispatched = async (state: string): Promise<string> => {
    const [planId, taskId] = [ids.next(), ids.next()]
    const routes = [{ vehicleId: ids.next(), visits: [{ taskId }] }]
    const plan = { hubId: HUB, source: 'external', routes, unassigned: [], taskIds: [taskId] }
    const planned = { flowId: HUB, title: 'T', hubId: HUB, assigneeIds: [], tags: [], components: {}, flowVersion: 1 }
    await append(ROUTING_RESULT_STREAMS + planId, ROUTING_RESULT.created, { ...plan, state: 'planned' })
    await append(TASK_STREAMS + taskId, TASK.created, { ...planned, state: 'new' })
    await append(TASK_STREAMS + taskId, TASK.changed, { ...planned, state, routingResultId: planId })
    await append(ROUTING_RESULT_STREAMS + planId, ROUTING_RESULT.changed, { ...plan, state: 'dispatched' })
    return planId
  }
  const follower = completeResults({ ...services, settle })
  t.teardown(() => follower.close())
  await follower.ready()
  const open = await dispatched('assigned')
  const over = await dispatched('finished')
  const writer = new RoutingWriter(services)
  await until('the completion', async () => (await writer.load('o', over))?.state === 'completed')
  t.equal((await writer.load('o', open))?.state, 'dispatched')
})
