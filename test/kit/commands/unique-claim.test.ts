import { test, type Test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { text } from '../../../src/kernel/schema.ts'
import type { Projection } from '../../../src/kit/consumers/projection.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { defineResource } from '../../../src/kit/resource/resource.ts'
import { callerWith } from '../../support/callers.ts'
import { routeCaller } from '../../support/call-route.ts'
import { dyingLog, Killed } from '../../support/dying-log.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { freshlySeeded } from '../../support/random.ts'

const badge = defineResource({
  noun: 'badge',
  plural: 'badges',
  tag: 'Badges',
  fields: { name: text({ max: 20 }) },
  permissions: { view: 'view/badge', edit: 'edit/badge' },
  unique: { field: 'name' },
  table: { indexes: { equality: ['name'] } },
  example: { name: 'Badge' },
})

const projection: Projection = { name: 'badges', version: 1, ...badge.rows }

const caller = callerWith(['view/badge', 'edit/badge'])

const start = async (t: Test) => {
  const services = await openServices(folderOf(t), new FakeClock(), [badge])
  const { runner, settle } = await startProjections(services, [projection])
  t.teardown(async () => {
    await runner.close()
    await services.close()
  })
  const over = (log = services.log) =>
    routeCaller({ routes: badge.routes({ ...services, log }), clock: services.clock, settle })
  return { ...services, over, call: over() }
}

type Started = Awaited<ReturnType<typeof start>>

/** Each way to write a badge; `prepare` answers the id of what is there before. */
const COMMANDS: {
  name: string
  method: 'POST' | 'PATCH' | 'DELETE'
  names: (n: number) => { before?: string; body?: { name: string } }
}[] = [
  { name: 'create', method: 'POST', names: (n) => ({ body: { name: `new ${n}` } }) },
  { name: 'rename', method: 'PATCH', names: (n) => ({ before: `old ${n}`, body: { name: `new ${n}` } }) },
  { name: 'delete', method: 'DELETE', names: (n) => ({ before: `old ${n}` }) },
]

/** Whether a name is a badge's, or can be one's: what neither is listed nor can be made is locked. */
const assertNotLocked = async (t: Test, { call }: Started, name: string): Promise<void> => {
  const made = await call('POST', '/badge', { caller, body: { name } })
  const listed = (await call('GET', `/badges?name=${encodeURIComponent(name)}`, { caller })).body.data
  t.equal(listed.length, 1, `${name} is one badge's`)
  t.ok(made.status === 201 || made.status === 409, `${name}: ${made.status}`)
}

for (const { name, method, names } of COMMANDS) {
  test(`${name}, killed between every two appends, locks no name`, async (t) => {
    const started = await start(t)
    for (let appends = 0; ; appends++) {
      const { before, body } = names(appends)
      const made = before && (await started.call('POST', '/badge', { caller, body: { name: before } })).body.data
      const dying = dyingLog(started.log, appends)
      const url = made === undefined ? '/badge' : `/badge/${made._id}`
      const answer = await started
        .over(dying.log)(method, url, { caller, body })
        .catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error
        })
      for (const value of [before, body?.name]) if (value !== undefined) await assertNotLocked(t, started, value)
      if (answer !== undefined) break
    }
  })
}

test('a rename that is asked for again does not take what another took after its claim', async (t) => {
  const started = await start(t)
  const { call, log, over } = started
  const { _id } = (await call('POST', '/badge', { caller, body: { name: 'old' } })).body.data
  const rename = { caller, body: { name: 'wanted' }, seed: Buffer.alloc(32, 1) }
  await t.rejects(over(dyingLog(log, 1).log)('PATCH', `/badge/${_id}`, rename), Killed, 'it has only claimed the name')
  t.equal((await call('POST', '/badge', { caller, body: { name: 'wanted' } })).status, 201)
  const again = await call('PATCH', `/badge/${_id}`, rename)
  t.match(again, { status: 409, body: { code: 'key_in_use' } })
  t.equal((await call('GET', '/badges?name=wanted', { caller })).body.data.length, 1)
})

/** Lets the calls of several users of one log through one by one, in an order by chance. */
const oneByOne = (log: EventLog, random: () => number) => {
  const waiting: (() => Promise<void>)[] = []
  const inTurn = <Result>(call: () => Promise<Result>): Promise<Result> =>
    new Promise((resolve, reject) => waiting.push(() => call().then(resolve, reject)))
  const drive = async (work: Promise<unknown>): Promise<void> => {
    let isDone = false
    void work.finally(() => (isDone = true))
    while (!isDone) {
      await new Promise((resume) => setImmediate(resume))
      const [next] = waiting.splice(Math.floor(random() * waiting.length), 1)
      await next?.()
    }
  }
  const user: EventLog = {
    ...log,
    append: (...args) => inTurn(() => log.append(...args)),
    read: (...args) => inTurn(() => log.read(...args)),
  }
  return { user, drive }
}

test('whoever is slow and whoever dies: a value has one owner at most, and one that was refused has none', async (t) => {
  const { log, ...services } = await start(t)
  const random = freshlySeeded(t)
  const outcomes: { [outcome: string]: number } = {}
  for (let round = 0; round < 120; round++) {
    const name = `raced ${round}`
    const origin = () => ({ organizationId: 'org-1', now: 0, ids: idSource(0), metadata: {} })
    const renamed = (await badge.writer({ ...services, log }).create(origin(), { name: `other ${round}` })).row
      ._id as string
    const { user, drive } = oneByOne(log, random)
    const racers = Array.from({ length: 2 + Math.floor(random() * 2) }, (_, i) => {
      const dies = random() < 0.2
      const mine = dies ? dyingLog(user, Math.floor(random() * 3)).log : user
      const writer = badge.writer({ ...services, log: mine })
      const write =
        i === 0 && random() < 0.5
          ? writer.change(origin(), { id: renamed, kind: 'amend', body: { name } })
          : writer.create(origin(), { name })
      return write.then(
        ({ row }) => ({ id: row._id as string }),
        (error: unknown) => ({ error }),
      )
    })
    const all = Promise.all(racers)
    await drive(all)
    const answers = await all
    const reader = badge.writer({ ...services, log })
    const won = answers.flatMap((answer) => ('id' in answer ? [answer.id] : []))
    for (const answer of answers) {
      const outcome =
        'id' in answer ? 'won' : answer.error instanceof Failure ? answer.error.code : String(answer.error)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    }
    const isAlive = !answers.some((answer) => 'error' in answer && answer.error instanceof Killed)
    if (isAlive) t.equal(won.length, 1, `${name}: one of those who live has it`)
    else t.ok(won.length <= 1, `${name}: one at most has it`)
    for (const id of won) t.equal((await reader.load(id)).state.values.name, name)
    const again = await reader.create(origin(), { name }).then(
      () => 'made',
      (error: Failure) => error.code,
    )
    if (won.length === 1) t.equal(again, 'key_in_use', `${name} stays taken`)
  }
  t.comment(outcomes)
  t.ok(outcomes.won > 0 && outcomes.key_in_use > 0 && outcomes['Killed: killed'] > 0, 'all of it happened')
})
