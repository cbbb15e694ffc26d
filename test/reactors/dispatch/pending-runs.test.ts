import { test } from 'tap'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { ATTEMPTS_MADE, RUNS_OWED, type AttemptMade } from '../../../src/features/automations/events.ts'
import { OWED_RUNS, OwedRows } from '../../../src/reactors/dispatch/owed-rows.ts'
import { triggerOf } from '../../../src/reactors/dispatch/owe.ts'
import { countOf } from '../../../src/reactors/dispatch/backlog.ts'
import { PendingRuns } from '../../../src/reactors/dispatch/pending-runs.ts'
import { SteadyTime } from '../../../src/reactors/dispatch/retry-schedule.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { entry, ORG } from './world.ts'

const AUTOMATION = 'a1'

test('runs that are owed while older ones are read back from the table are not forgotten', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  let hold: { reached: () => void; until: Promise<void> } | undefined
  const tables: TableStore = services.tables
  const commit = tables.commit.bind(tables)
  tables.commit = async (...committed) => {
    await commit(...committed)
    hold?.reached()
    await hold?.until
  }
  await tables.declare(OWED_RUNS)
  const rows = new OwedRows(tables, 0)
  await rows.take()
  const pending = new PendingRuns(0, rows, new SteadyTime(services.clock))
  let revision = 0
  let sequence = 1
  const owe = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const owed = [{ trigger: triggerOf(entry(1, sequence)), runs: [{ automationId: AUTOMATION }] }]
      const source = { source: 'transitions', sourceAt: revision, complete: true, owedAt: 1 }
      const data = { ...source, firstSequence: sequence++, owed }
      pending.apply({ type: RUNS_OWED, data }, revision++)
    }
  }
  const ended = new Set<string>()
  const endAll = (max: number): void => {
    const runs = pending.get(AUTOMATION)?.order.idle().slice(0, max) ?? []
    const attempts = runs.map(({ runId }) => succeeded(runId))
    for (const { runId } of runs) ended.add(runId)
    pending.apply({ type: ATTEMPTS_MADE, data: { attempts } }, revision++)
  }
  owe(600)
  const backlog = pending.get(AUTOMATION)
  if (backlog === undefined) return t.fail('nothing is owed')
  t.equal(backlog.order.size, 500)
  endAll(300)

  let goOn = (): void => undefined
  const until = new Promise<void>((resume) => (goOn = resume))
  const stored = new Promise<void>((reached) => (hold = { reached, until }))
  const refilled = pending.refill(backlog)
  await stored
  owe(50)
  goOn()
  await refilled
  t.equal(countOf(backlog), 350)
  for (let tries = 0; ended.size < 650 && tries < 10; tries++) {
    endAll(1_000)
    await pending.refill(backlog)
  }
  t.equal(ended.size, 650)
  t.equal(pending.count(AUTOMATION), 0)
})

const succeeded = (runId: string): AttemptMade => ({
  runId,
  automationId: AUTOMATION,
  organizationId: ORG,
  at: 1,
  durationMs: 1,
  failures: 0,
  status: 'succeeded',
})
