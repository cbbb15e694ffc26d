import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Test, test } from 'tap'
import type { Reclaimed } from '../../src/engines/event-log.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { LogSpace } from '../../src/reactors/sweep/log-space.ts'
import { newEvent } from '../contracts/event-log.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'

const HOUR_MS = 3_600_000

const opened = async (t: Test, path = `${folderOf(t)}/log`) => {
  const server = await openEventstoredbServer({ path })
  let nowMs = Date.now()
  const log = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: () => nowMs })
  const close = async (): Promise<void> => {
    await log.close()
    await server.close()
  }
  t.teardown(close)
  return { server, log, path, close, later: (hours: number) => void (nowMs += hours * HOUR_MS) }
}

test('a follower whose checkpoint was scavenged misses nothing behind it', async (t) => {
  const { server, log } = await opened(t)
  for (let revision = 0; revision < 4; revision++) await log.append('a-1', [newEvent()], 'any')
  await log.append('b-1', [newEvent()], 'any')
  const positions = (await log.read('a-1', 0, 4)).map(({ position }) => position)
  await log.truncateBefore('a-1', 3)
  t.equal(await log.reclaim?.(), 'begun')
  t.equal(server.scavenges, 1)
  for (const checkpoint of [...positions, undefined, -1]) {
    const ended = new AbortController()
    const seen: string[] = []
    for await (const { events, caughtUp } of log.follow({ prefixes: ['a-', 'b-'] }, checkpoint, ended.signal)) {
      seen.push(...events.map(({ stream, revision }) => `${stream}@${revision}`))
      if (caughtUp) ended.abort()
    }
    t.same(seen, checkpoint === positions[3] ? ['b-1@0'] : ['a-1@3', 'b-1@0'])
  }
})

test('a scavenge is due a week after the last one, after a day where much was hidden, and never sooner', async (t) => {
  const { server, log, later } = await opened(t)
  const due = async (expected: Reclaimed, what: string) => t.equal(await log.reclaim?.(), expected, what)
  await due('begun', 'there was none before')
  await due('notDue', 'just after one')
  later(30)
  await due('notDue', 'nothing was hidden')
  await log.append('a-1', [newEvent('large', 900_000)], 'none')
  for (let round = 0; round < 2; round++)
    await log.append(
      'a-1',
      Array.from({ length: 200 }, () => newEvent()),
      'any',
    )
  await log.truncateBefore('a-1', 400)
  await due('begun', 'much was hidden, by an estimate from the first event')
  await due('notDue', 'the journal tells of it')
  later(7 * 24 + 1)
  await due('begun', 'a week went by')
  later(8 * 24)
  server.mayScavenge = false
  await due('forbidden', 'its user may not')
  t.equal(server.scavenges, 3)
  server.fault = 'notReady'
  await t.rejects(Promise.resolve(log.reclaim?.()), { code: 'engine_down' })
})

test('a scavenge that was cut off is begun again, after longer and longer pauses, until one ends well', async (t) => {
  const { server, log, later } = await opened(t)
  const due = async (expected: Reclaimed, what: string) => t.equal(await log.reclaim?.(), expected, what)
  const told = async () => (await log.examine?.())?.settings.find(({ name }) => name === 'the last scavenge')
  server.scavengeEnd = 'later'
  await due('begun', 'there was none before')
  later(2)
  await due('notDue', 'it may still run')
  t.equal(await told(), undefined)
  server.endScavenges('Failed')
  t.match(await told(), { value: /1 in a row/, isGood: false, advice: /stays on the disk/ })
  server.scavengeEnd = 'Failed'
  await due('begun', 'more than an hour after the first one began')
  await due('notDue', 'two were cut off, which makes it four hours')
  t.match(await told(), { value: /2 in a row/ })
  t.equal(await log.failedReclaims?.(), 2)
  later(3)
  server.scavengeEnd = 'Success'
  await due('begun', 'they are over')
  await due('notDue', 'it ended well')
  t.equal(await told(), undefined)
  t.equal(await log.failedReclaims?.(), 0)
  t.equal(server.scavenges, 1)
})

test('the operator is told once of a user that may not, and the log is not asked again', async (t) => {
  const told: string[] = []
  const logger = { info: () => told.push('info'), warn: () => told.push('warn'), error: () => told.push('error') }
  const answers: (Reclaimed | Error)[] = ['notDue', new Error('down'), 'begun', 'forbidden', 'begun']
  const log = {
    reclaim: async () => {
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  const space = new LogSpace({ log, logger } as never)
  for (let round = 0; round < 6; round++) await space.reclaim()
  t.same(told, ['error', 'info', 'warn'])
  t.equal(answers.length, 1)
  await new LogSpace({ log: {}, logger } as never).reclaim()
})

test('what was erased is in the file until a scavenge, and not after it, also when the server was killed', async (t) => {
  const secret = 'a-name-and-an-address'
  const first = await opened(t)
  const { path, log } = first
  const named = { ...newEvent(), data: Buffer.from(secret) }
  await log.append('person-1', [named], 'none')
  await log.append('person-2', [newEvent()], 'none')
  await log.erase('person-1')
  const isThere = (): boolean => readFileSync(path).includes(secret)
  t.ok(isThere(), 'hidden from every reader and still on disk')
  t.equal(await log.reclaim?.(), 'begun')
  t.notOk(isThere())
  await first.close()
  const again = await opened(t, path)
  t.same(await again.log.read('person-1', 0, 10), [])
  t.equal((await again.log.read('person-2', 0, 10)).length, 1)
  await again.log.append('person-1', [newEvent()], 'none')
  t.equal((await again.log.read('person-1', 0, 10)).length, 1)
})

test('an erasure that a kill cut after its mark is finished by the next one', async (t) => {
  const { server, log } = await opened(t)
  await log.append('person-1', [newEvent(), newEvent()], 'none')
  server.fault = 'noDelete'
  await t.rejects(log.erase('person-1'), { code: 'engine_down' })
  server.fault = undefined
  await log.erase('person-1')
  t.same(await log.read('person-1', 0, 10), [])
  const { revision } = await log.append('person-1', [newEvent()], 'none')
  t.same(
    (await log.read('person-1', 0, 10)).map((event) => event.revision),
    [revision],
  )
})
