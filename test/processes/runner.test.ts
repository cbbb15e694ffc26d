import { test, type Test } from 'tap'
import { processes } from '../../projections/processes.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import {
  defineProcess,
  type OriginOf,
  PROCESS,
  type ProcessKey,
  processStream,
} from '../../src/kit/commands/process.ts'
import { ProcessRunner } from '../../src/processes/runner.ts'
import { dyingLog } from '../support/dying-log.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices, startProjections } from '../support/open-services.ts'
import { until } from '../support/service.ts'

interface Move {
  box: string
  to: string
}

const MOVE: ProcessKey<Move> = { name: 'move' }

/** A process of three steps that note what they do; `fails` says what the last one throws. */
const start = async (t: Test) => {
  const services = await openServices(folderOf(t), new FakeClock())
  const { runner, settle } = await startProjections(services, [processes])
  t.teardown(async () => {
    await runner.close()
    await services.close()
  })
  const done: string[] = []
  const fails: { how?: unknown } = {}
  const note = (what: string) => async (_data: Move, originOf: OriginOf) => {
    const { ids, organizationId } = originOf()
    done.push(`${what} ${organizationId} ${ids.next()}`)
    return undefined
  }
  const move = defineProcess(MOVE, [
    { name: 'lift', run: note('lift'), undo: note('undo lift') },
    { name: 'carry', run: note('carry'), undo: note('undo carry') },
    {
      name: 'put',
      run: async (data, originOf) => {
        if (fails.how !== undefined) throw fails.how
        return note('put')(data, originOf)
      },
    },
  ])
  const life = (log = services.log): ProcessRunner => {
    const runs = new ProcessRunner({ ...services, log })
    runs.know([move])
    runs.startCarryingOn()
    t.teardown(() => runs.stopCarryingOn())
    return runs
  }
  const origin = () => ({ organizationId: 'org-1', now: 1, ids: idSource(1), metadata: { actor: 'user:u' } })
  const run = (
    runs: ProcessRunner,
    subject = 'box-1',
    plan = async (): Promise<Move | undefined> => ({ box: 'b', to: 'x' }),
  ) => runs.run(MOVE, subject, origin(), plan)
  const stream = async (subject = 'box-1') =>
    (await services.log.read(processStream(subject), 0, 10)).map(({ type, data }) => ({
      type,
      ...JSON.parse(String(Buffer.from(data))),
    }))
  /** What was done, without ids. */
  const steps = () => done.map((line) => line.replace(/ org-1 .*/, ''))
  /** Waits until the table of open processes has what was begun. */
  const known = async (): Promise<void> => {
    const events = await services.log.read(processStream('box-1'), 0, 10)
    const last = events.filter(({ type }) => type === PROCESS.started).at(-1) ?? events[0]
    await settle({ position: last.position, types: [last.type] }, 60_000)
  }
  return { ...services, done, steps, fails, life, run, stream, known }
}

test('a process runs its steps once, and keeps nothing of what it knew', async (t) => {
  const { life, run, steps, stream } = await start(t)
  await run(life())
  t.same(steps(), ['lift', 'carry', 'put'])
  t.match(await stream(), [{ type: PROCESS.finished, process: 'move', outcome: 'done' }])
})

test('a step that is refused: what was done before it is undone, and the caller hears why', async (t) => {
  const { life, run, steps, stream, fails } = await start(t)
  fails.how = new Failure('key_in_use')
  await t.rejects(run(life()), { code: 'key_in_use' })
  t.same(steps(), ['lift', 'carry', 'undo carry', 'undo lift'])
  t.match(await stream(), [{ type: PROCESS.finished, outcome: 'refused' }])
})

test('a refusal stands, although nothing would refuse it after a crash', async (t) => {
  const { log, life, run, steps, fails, known } = await start(t)
  fails.how = new Failure('key_in_use')
  // Start and refusal are written, the end is not.
  await t.rejects(run(life(dyingLog(log, 2).log)), /killed/)
  await known()
  fails.how = undefined
  await life().idle()
  t.same(steps(), ['lift', 'carry', 'undo carry', 'undo lift', 'undo carry', 'undo lift'])
})

test('what passes is tried again with the same ids, later and later, and reported when it does not pass', async (t) => {
  const { life, run, done, stream, fails, clock, lines, known } = await start(t)
  fails.how = new Failure('engine_down')
  const runs = life()
  await t.rejects(run(runs), { code: 'engine_down' })
  await known()
  t.match(await stream(), [{ type: PROCESS.started, process: 'move', data: { box: 'b', to: 'x' } }])
  for (const [tries, ms] of [
    [2, 5_000],
    [3, 5_000],
    [4, 30_000],
    [5, 120_000],
  ] as const) {
    clock.advance(ms)
    await until(`try ${tries}`, () => done.length === 2 * tries)
    await runs.idle()
    t.equal(runs.stuck, tries === 5 ? 1 : 0)
  }
  t.match(lines.at(-1), { level: 'error', msg: 'a process is stuck', fields: { stream: 'process-box-1', failures: 5 } })
  t.equal(new Set(done).size, 2, 'each step with one id, at every run')
  clock.advance(300_000)
  await runs.idle()
  t.equal(done.length, 10, 'it waits longer by now')
  fails.how = undefined
  await run(runs, 'box-1', async () => undefined)
  t.equal(runs.stuck, 0, 'whoever comes next carries it on')
})

test('what a crash left open is carried on by the next life, and by another node', async (t) => {
  const { log, clock, life, run, steps, stream, known } = await start(t)
  const node = life()
  await node.idle()
  await t.rejects(run(life(dyingLog(log, 1).log)), /killed/)
  await known()
  t.match(await stream(), [{ type: PROCESS.started }])
  clock.advance(5_000)
  await until('the other node to have found it', async () => (await stream())[0].type === PROCESS.finished)
  t.same(steps(), ['lift', 'carry', 'put', 'lift', 'carry', 'put'])
})

test('one process at a time about one subject: the earlier one comes to its end first', async (t) => {
  const { log, life, run, steps, fails } = await start(t)
  await t.rejects(run(life(dyingLog(log, 1).log)), /killed/)
  const runs = life()
  await run(runs, 'box-1', async () => {
    t.equal(steps().length, 6, 'the one before has ended')
    return { box: 'c', to: 'y' }
  })
  t.equal(steps().length, 9)
  let planned = 0
  const plan = async () => ({ box: String(planned++), to: 'z' })
  await Promise.all(Array.from({ length: 4 }, () => run(runs, 'box-2', plan)))
  t.equal(steps().length, 9 + 12)
  fails.how = new Failure('conflict')
  await t.rejects(run(runs, 'box-3'), { code: 'conflict' })
  fails.how = undefined
  await run(runs, 'box-3')
  t.equal(steps().at(-1), 'put')
})

test('a process that nobody knows stays open, and says so', async (t) => {
  const { log, life, lines, known, run } = await start(t)
  const data = { process: 'unheard', organizationId: 'org-1', data: {}, at: 0 }
  await appendFacts(log, processStream('box-1'), [{ type: PROCESS.started, data }], [idSource(0).next()], 0, {})
  await known()
  await life().idle()
  t.match(lines.at(-1), { level: 'warn', fields: { error: /no process unheard/ } })
  await t.rejects(run(life()), /no process unheard/)
})
