import { test } from 'tap'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { ATTEMPTS_MADE, RUNS_OWED, runIdOf, type AttemptMade } from '../../../src/features/automations/events.ts'
import { OWED_RUNS, OwedRows, type Run } from '../../../src/reactors/dispatch/owed-rows.ts'
import { triggerOf } from '../../../src/reactors/dispatch/owe.ts'
import { countOf } from '../../../src/reactors/dispatch/backlog.ts'
import { PendingRuns } from '../../../src/reactors/dispatch/pending-runs.ts'
import { RunOrder } from '../../../src/reactors/dispatch/run-order.ts'
import { SteadyTime } from '../../../src/reactors/dispatch/retry-schedule.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { entry, ORG } from './world.ts'
import { seeded } from '../../support/random.ts'

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

test('a run that was paid is not found again by its row, stored ahead of a checkpoint that a crash kept back', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  await services.tables.declare(OWED_RUNS)
  const trigger = triggerOf(entry(1, 1))
  const owed = [{ trigger, runs: [{ automationId: AUTOMATION }] }]
  const source = { source: 'transitions' as const, sourceAt: 0, complete: true, owedAt: 1 }
  const fact = { type: RUNS_OWED, data: { ...source, firstSequence: 1, owed } }
  const life = async (): Promise<PendingRuns> => {
    const rows = new OwedRows(services.tables, 0)
    await rows.take()
    const pending = new PendingRuns(0, rows, new SteadyTime(services.clock))
    pending.apply(fact, 0)
    return pending
  }
  await (await life()).store()

  const next = await life()
  next.apply({ type: ATTEMPTS_MADE, data: { attempts: [succeeded(runIdOf(trigger, AUTOMATION))] } }, 1)
  await next.store()
  await next.recall()
  t.equal(next.count(AUTOMATION), 0)
})

const succeeded = (runId: string): AttemptMade => ({
  runId,
  automationId: AUTOMATION,
  organizationId: ORG,
  owedAt: 1,
  at: 1,
  durationMs: 1,
  failures: 0,
  status: 'succeeded',
})

test('whichever runs end meanwhile, the oldest of those that are due is taken', (t) => {
  const next = seeded(1)
  const random = (below: number): number => Math.floor(next() * below)
  const taken: (number | undefined)[] = []
  const wanted: (number | undefined)[] = []
  for (let round = 0; round < 50; round++) {
    const order = new RunOrder()
    const live = new Map<string, { run: Run; isDue: boolean }>()
    for (let sequence = 0; sequence < 200; sequence++) {
      const trigger = { subject: { type: 'task', id: `s${sequence}` } } as Run['trigger']
      const run = { runId: `r${sequence}`, automationId: 'a', sequence, trigger, owedAt: 0, attempts: 0 }
      const one = { run: { ...run, dueAt: random(1_000), delayMs: 0, alone: false, stored: false }, isDue: false }
      order.add(one.run)
      live.set(run.runId, one)
      const gone = [...live.keys()][random(3 * live.size)]
      if (gone !== undefined) {
        order.end(gone)
        live.delete(gone)
      }
      if (random(3) > 0) continue
      const now = random(300)
      for (const one of live.values()) one.isDue ||= one.run.dueAt <= now
      wanted.push([...live.values()].find(({ isDue }) => isDue)?.run.sequence)
      const next = order.take(now)
      taken.push(next?.sequence)
      if (next !== undefined) {
        order.end(next.runId)
        live.delete(next.runId)
      }
    }
  }
  t.strictSame(taken, wanted)
  t.ok(taken.length > 2_000)
  t.end()
})
