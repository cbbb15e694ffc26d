import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask, call, type Service, signUp, startService } from '../../test/support/service.ts'
import { option, round } from './fresh-service.ts'
import { driveHttp, startBare } from './drive-http.ts'
import type { HttpPlan } from './http-generator.ts'

/**
 * Commands and reads by id of the whole service, beside a bare handler of uWebSockets.js that the same generator drives
 * in the same run; then both at half of their maximum and at half of the target, and reads while people log in. Usage:
 * node dist/bench/load/run-api.js [--seconds 5] [--connections 64]
 */
const measureMs = option('seconds', 5) * 1000
const connections = option('connections', 64)
const VEHICLES = 256
const WARMUP_MS = 2_000

/** Logs in one after the other until stopped; answers the median time of a login, ms. */
const loginsUntil = async (service: Service, body: object, isOver: () => boolean): Promise<number> => {
  const times: number[] = []
  while (!isOver()) {
    const begun = performance.now()
    await call(service, 'POST', '/auth/login', { body })
    times.push(performance.now() - begun)
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]
}

const measure = async (service: Service, barePort: number): Promise<object> => {
  const { token, email, password } = await signUp(service, 'Bench')
  const paths: string[] = []
  const hubId = (await ask(service, 'GET', '/hubs', { token })).data[0]._id
  for (let i = 0; i < VEHICLES; i++) {
    const { data } = await ask(service, 'POST', '/vehicle', { token, body: { name: `Van ${i}`, type: 'car', hubId } })
    paths.push(`/api/v3/vehicle/${data._id}`)
  }
  const rows: { [name: string]: unknown } = {}
  for (const [name, method, halfOfAim] of [
    ['reads by id', 'GET', 7_500],
    ['commands', 'PATCH', 1_500],
  ] as const) {
    const plan: HttpPlan = { port: service.port, token, paths, method, connections, warmupMs: WARMUP_MS, measureMs }
    const bare = await driveHttp({ ...plan, port: barePort })
    const most = await driveHttp(plan)
    const half = await driveHttp({ ...plan, perSecond: most.perSecond / 2 })
    const aim = await driveHttp({ ...plan, perSecond: halfOfAim })
    rows[name] = {
      'a second': Math.round(most.perSecond),
      'bare handler': Math.round(bare.perSecond),
      share: round((100 * most.perSecond) / bare.perSecond) / 100,
      'p99 at half, ms': round(half.p99),
      [`p99 at ${halfOfAim} a second, ms`]: round(aim.p99),
      refused: most.refused + half.refused + aim.refused,
    }
    if (method !== 'GET') continue
    let isOver = false
    const logins = loginsUntil(service, { email, password }, () => isOver)
    const beside = await driveHttp({ ...plan, perSecond: most.perSecond / 4 })
    isOver = true
    rows['reads at a quarter while somebody logs in'] = {
      'a second': Math.round(beside.perSecond),
      'p99, ms': round(beside.p99),
      'median login, ms': round(await logins),
    }
  }
  return rows
}

const data = mkdtempSync(join(tmpdir(), 'waymark-api-'))
const service = await startService(data)
const bare = await startBare()
try {
  process.stdout.write(`${JSON.stringify(await measure(service, bare.port), undefined, 2)}\n`)
  await service.stop()
} finally {
  bare.child.kill()
  await service.kill()
  rmSync(data, { recursive: true, force: true })
}
