import { test } from 'tap'
import type { HistoryParameters } from '../../src/engines/history-store.ts'
import { withActualVisits } from '../../src/features/routing/actual-visits.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const DRIVEN = Date.parse('2026-11-02T09:00:00Z')
const time = (at: number): string => new Date(at).toISOString()

/** A history with one stay at the only task. */
const services = {
  tables: {
    find: async () => ({ rows: [{ id: 'tracker', row: {} }] }),
    getMany: async () => [{ _id: 'task', lat: 52, lng: 21 }],
  },
  history: {
    rows: async (_sql: string, { from, to }: HistoryParameters) =>
      Number(from) <= DRIVEN && DRIVEN <= Number(to) ? [{ stop: 1, since: DRIVEN, until: DRIVEN + 60_000 }] : [],
  },
}
const caller = { permissions: new Set(['view/location-history']) }

const actual = async (result: object, now: number): Promise<unknown> => {
  const whole = { state: 'dispatched', dispatchedAt: time(DRIVEN - HOUR), organizationId: 'o', ...result }
  const shown = (await withActualVisits(services as never, caller as never, whole as never, now)) as never as {
    routes: { visits: { actualArrivalAt?: string }[] }[]
  }
  return shown.routes[0].visits[0].actualArrivalAt
}
const routesAt = (arrivalAt: number | undefined) => [
  { vehicleId: 'van', visits: [{ taskId: 'task', ...(arrivalAt !== undefined && { arrivalAt: time(arrivalAt) }) }] },
]

test('what was driven stays in a plan one task of which is open for weeks', async (t) => {
  const routes = routesAt(DRIVEN + HOUR)
  t.equal(await actual({ routes }, DRIVEN + DAY), time(DRIVEN))
  t.equal(await actual({ routes }, DRIVEN + 30 * DAY), time(DRIVEN))
  const late = { routes, state: 'completed', completedAt: time(DRIVEN + 20 * DAY) }
  t.equal(await actual(late, DRIVEN + 30 * DAY), time(DRIVEN))
})

test('a plan that is dispatched long before it is driven, or has no times', async (t) => {
  const routes = routesAt(DRIVEN)
  t.equal(await actual({ routes, dispatchedAt: time(DRIVEN - 20 * DAY) }, DRIVEN + 30 * DAY), time(DRIVEN))
  const over = { state: 'completed', completedAt: time(DRIVEN + 2 * DAY) }
  t.equal(await actual({ routes: routesAt(undefined), ...over }, DRIVEN + 30 * DAY), time(DRIVEN))
})
