import { test } from 'tap'
import { Failure } from '../../src/kernel/errors.ts'
import { failedReclaims } from '../../src/operations/failed-reclaims.ts'
import { systemRoute, type SystemServices } from '../../src/operations/system.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'

test('the log is asked once a minute, and again where it did not answer', async (t) => {
  const clock = new FakeClock()
  let asked = 0
  let failed: number | Error = 2
  const log = {
    failedReclaims: async () => {
      asked++
      if (failed instanceof Error) throw failed
      return failed
    },
  }
  const ask = failedReclaims({ log, clock })
  t.same([await ask(), await ask(), asked], [2, 2, 1])
  await clock.advance(60_000)
  failed = new Failure('engine_down')
  await t.rejects(ask(), { code: 'engine_down' })
  failed = 0
  t.same([await ask(), asked], [0, 3])
  t.equal(await failedReclaims({ log: {}, clock })(), 0, 'an engine that gives space back by itself')
})

test('operators are told of scavenges that do not complete', async (t) => {
  const status = async (failed: () => Promise<number>) => {
    const services = {
      config: {
        dataPath: folderOf(t),
        logUrl: 'esdb:',
        tablesUrl: 'redis:',
        historyUrl: 'http:',
        filesUrl: 's3:',
        roles: [],
      },
      health: { down: async () => [] },
      lags: async () => [],
      failedReclaims: failed,
      history: { rows: async () => [] },
      version: '1.0.0',
      startedAt: 0,
    } as unknown as SystemServices
    const answer = (await systemRoute(services).handler({ now: 1_000 } as never)) as { body: { data: Status } }
    return answer.body.data
  }
  const told = await status(async () => 3)
  t.equal(told.scavengesFailed, 3)
  t.equal(told.isWell, false)
  t.match(told.findings, [/^3 scavenges of the log in a row did not complete: what was erased is still on its disk\.$/])
  t.match(await status(async () => 0), { scavengesFailed: 0, isWell: true, findings: [] })
  const down = async () => {
    throw new Failure('engine_down')
  }
  t.match(await status(down), { scavengesFailed: null, findings: [] })
})

interface Status {
  isWell: boolean
  findings: string[]
  scavengesFailed: number | null
}
