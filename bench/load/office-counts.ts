import { performance } from 'node:perf_hooks'
import { ask, type Service } from '../../test/support/service.ts'
import { round } from './fresh-service.ts'

const GROUPS = ['state', 'hubId', 'flowId', 'teamId', 'assigneeId', 'day']
const ROUNDS = 20
const BULK_TASKS = 500
const BULK_CONNECTIONS = 4
const BULK_REQUESTS = 100
const WARM_REQUESTS = 20

/** Time of each summary: at the first request, and after a task has changed. */
export const summaryTimes = async (service: Service, token: string, taskIds: readonly string[]): Promise<object> => {
  const table: { [name: string]: object } = {}
  let next = 0
  for (const groupBy of GROUPS) {
    const times: number[] = []
    for (let i = 0; i <= ROUNDS; i++) {
      const askedAt = performance.now()
      await ask(service, 'GET', `/tasks/summary?groupBy=${groupBy}`, { token })
      times.push(performance.now() - askedAt)
      await ask(service, 'POST', `/task/${taskIds[4 * next++]}/cancel`, { token, body: {} })
    }
    const [first, ...others] = times
    others.sort((a, b) => a - b)
    table[`summary by ${groupBy}`] = {
      'first, ms': round(first),
      'median after a change, ms': round(others[ROUNDS >> 1]),
    }
  }
  return table
}

/** Rate of tasks made by requests of 500. */
export const bulkRate = async (service: Service, token: string): Promise<object> => {
  const flow = (await ask(service, 'GET', '/flows?key=visit', { token })).data[0]
  const hub = (await ask(service, 'GET', '/hubs?limit=1', { token })).data[0]
  const one = { flowId: flow._id, title: 'Deliver', hubId: hub._id, lat: 52, lng: 21, priority: 5 }
  const body = { tasks: Array.from({ length: BULK_TASKS }, (_, n) => ({ ...one, title: `Deliver ${n} parcels` })) }
  const many = async (requests: number): Promise<number> => {
    let left = requests
    const startedAt = performance.now()
    const send = async (): Promise<void> => {
      while (left-- > 0) await ask(service, 'POST', '/tasks/bulk', { token, body })
    }
    await Promise.all(Array.from({ length: BULK_CONNECTIONS }, send))
    return (1_000 * requests * BULK_TASKS) / (performance.now() - startedAt)
  }
  await many(WARM_REQUESTS)
  return { 'tasks made in bulk, a second': Math.round(await many(BULK_REQUESTS)) }
}
