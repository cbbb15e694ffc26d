import type { JsonObject } from '../../src/kernel/json.ts'
import { office, type Walk } from './walks.ts'

/** Commands of routing results, as `WALKS`. */
export const ROUTE_WALKS: Walk[] = [
  {
    operationId: 'dispatchRoutes',
    what: 'the dispatch of a routing result',
    prepare: async (world) => {
      const { first, other, second, hubId, made } = await office(world)
      const flowId = await made('/flow', { name: 'Drive', steps: [{ id: 'one', name: 'One', components: [] }] })
      const vehicleId = await made('/vehicle', { name: 'Van', hubId: hubId[0], userId: second })
      const tasks = ['One', 'Two', 'Three'].map((title) => made('/task', { title, flowId, hubId: hubId[0] }))
      const taskIds = await Promise.all(tasks)
      const visits = taskIds.map((taskId) => ({ taskId }))
      const id = await made('/routing-result', { hubId: hubId[0], routes: [{ vehicleId, visits }] })
      const dispatch = { method: 'POST', url: `/routing-result/${id}/dispatch` } as const
      return {
        request: { by: first, ...dispatch },
        other: { by: other, ...dispatch },
        check: async (t) => {
          t.equal((await first.call('GET', `/routing-result/${id}`)).body.data.state, 'dispatched')
          const listed: JsonObject[] = (await first.call('GET', `/tasks?routingResultId=${id}`)).body.data
          t.equal(listed.length, taskIds.length)
          for (const { assigneeIds } of listed) t.same(assigneeIds, [second])
        },
      }
    },
  },
]
