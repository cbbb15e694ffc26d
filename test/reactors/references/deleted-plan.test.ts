import { test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { dataType } from '../../../src/features/data/data-type.ts'
import { flow } from '../../../src/features/flows/flow.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { role } from '../../../src/features/identity/users/role.ts'
import { user } from '../../../src/features/identity/users/user.ts'
import { routingResult } from '../../../src/features/routing/result.ts'
import { RoutingWriter } from '../../../src/features/routing/routing-writer.ts'
import { ROUTING_RESULT, ROUTING_RESULT_STREAMS } from '../../../src/features/routing/views.ts'
import { task } from '../../../src/features/tasks/task.ts'
import { TASK, TASK_STREAMS, TASKS } from '../../../src/features/tasks/views.ts'
import { team } from '../../../src/features/teams/team.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'

const AT = '2026-01-01T00:00:00.000Z'
const HUB = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'

test('a plan of routes that is deleted is taken out of its tasks, those that are over too, and out of no others', async (t) => {
  const services = await openServices(folderOf(t), new FakeClock(), [
    routingResult,
    task,
    flow,
    dataType,
    hub,
    team,
    user,
    role,
  ])
  const { runner, settle } = await startProjections(services, [directory([routingResult.rows, task.rows])])
  t.teardown(() => services.close())
  t.teardown(() => runner.close())
  const { log, tables, clock } = services
  const ids = idSource(clock.now())
  const metadata = { organizationId: 'o' }
  const append = async (stream: string, type: string, values: JsonObject) => {
    const data = encodeJson({ organizationId: 'o', values, createdAt: AT, at: AT })
    const event = { id: ids.next(), type, isJson: true, data, metadata }
    const { position } = await log.append(stream, [event], 'any')
    await settle({ position, types: [type] }, 60_000)
  }
  const dispatched = async (states: readonly string[]) => {
    const planId = ids.next()
    const taskIds = states.map(() => ids.next())
    const routes = [{ vehicleId: ids.next(), visits: taskIds.map((taskId) => ({ taskId })) }]
    const plan = { hubId: HUB, source: 'external', state: 'dispatched', routes, unassigned: [], taskIds }
    await append(ROUTING_RESULT_STREAMS + planId, ROUTING_RESULT.created, plan)
    for (const [i, state] of states.entries()) {
      const planned = { flowId: HUB, title: 'T', hubId: HUB, assigneeIds: [], components: {}, flowVersion: 1, state }
      await append(TASK_STREAMS + taskIds[i], TASK.created, { ...planned, routingResultId: planId })
    }
    return { planId, taskIds }
  }
  const gone = await dispatched(['assigned', 'finished'])
  const kept = await dispatched(['assigned'])
  const origin = { organizationId: 'o', now: clock.now(), ids, metadata }
  const { wrote } = await new RoutingWriter(services).delete(origin, { id: gone.planId })
  t.ok(wrote && (await settle(wrote, 60_000)))
  const planOf = async (taskId: string) => (await tables.get(TASKS, 'o', taskId))?.routingResultId
  for (const taskId of gone.taskIds) t.equal(await planOf(taskId), undefined)
  t.equal(await planOf(kept.taskIds[0]), kept.planId)
  const { rows } = await tables.find(TASKS, 'o', { where: { routingResultId: gone.planId }, limit: 10 })
  t.same(rows, [])
})
