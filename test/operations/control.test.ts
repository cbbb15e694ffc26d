import { test } from 'tap'
import { Failure } from '../../src/kernel/errors.ts'
import { EngineHealth } from '../../src/kit/operations/engine-health.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { controlOf } from '../../src/operations/control.ts'
import type { RoleServices } from '../../src/roles/role.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('an engine that goes away between a look at it and a read is named', async (t) => {
  const clock = new FakeClock()
  let isUp = true
  const answer = async (): Promise<never[]> => {
    if (isUp) return []
    clock.advance(5_000) // as a deadline
    throw new Failure('engine_down')
  }
  const tables = {
    ping: async () => void (await answer()),
    declare: async () => undefined,
    async *scan() {
      yield* await answer()
    },
    find: async () => ({ rows: await answer(), next: null }),
  }
  const up = { ping: async () => undefined }
  const health = new EngineHealth({ engines: { log: up, tables, history: up }, metrics: createMetrics(), clock })
  t.teardown(() => health.close())
  const services = { clock, tables, log: up, partitions: 1 } as unknown as RoleServices
  const { signal } = new AbortController()
  const control = controlOf(services, {
    health,
    lags: async () => [],
    devices: () => ({ listeners: [], bridges: [] }),
    rotateTokenKey: async () => undefined,
    signal,
  })
  const engines = { log: true, tables: true, history: true }
  t.same(await control({ command: 'status' }), { engines, consumers: [], listeners: [], bridges: [] })
  isUp = false
  t.same(await control({ command: 'status' }), {
    engines: { ...engines, tables: false },
    consumers: [],
    listeners: [],
    bridges: [],
  })
})
