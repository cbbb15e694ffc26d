import { test, type Test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { Checkpoints, settling } from '../../../src/kit/consumers/settle.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { folderOf } from '../../support/folder-of.ts'
import { storeCheckpoint } from '../../support/store-checkpoint.ts'
import { openServices } from '../../support/open-services.ts'

const PROJECTIONS = [
  { name: 'hubs', inputs: ['hubCreated'] },
  { name: 'users', inputs: ['userCreated', 'hubCreated'] },
]
const LIMIT_MS = 2_000

const open = async (t: Test) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const { tables, clock } = services
  /** As another process has them: it shares the store and hears nothing of what is committed here. */
  const elsewhere = new Checkpoints(tables, clock)
  const store = (consumer: string, at: { [source: string]: number }) => storeCheckpoint(tables, consumer, at)
  return { ...services, elsewhere, store, settle: settling(services, PROJECTIONS) }
}

/** Lets what was begun come as far as it can without the clock. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resume) => setImmediate(resume))
}

test('a write is settled once every read model that it feeds has stored it', async (t) => {
  const { settle, store, clock } = await open(t)
  let answer: boolean | undefined
  const wrote = { position: 7, types: ['hubCreated'] }
  void settle(wrote, LIMIT_MS).then((isSettled) => (answer = isSettled))
  await store('hubs', { all: 7 })
  await store('users', { all: 6 })
  await turns()
  t.equal(answer, undefined)
  await store('users', { all: 9 })
  await turns()
  t.equal(answer, true, 'without looking again')
  t.equal(await settle({ position: 70, types: ['nobody reads this'] }, LIMIT_MS), true)
  const late = settle({ position: 70, types: ['other'], before: [{ position: 60, types: ['userCreated'] }] }, LIMIT_MS)
  await turns()
  clock.advance(LIMIT_MS)
  t.equal(await late, false, 'an earlier append of the same request counts too')
})

test('steps follow one after the other, a stream to the end that it has by then', async (t) => {
  const { settle, store, log } = await open(t)
  const append = (n: number) =>
    log.append('places', [{ id: idFrom(n), type: 'x', data: encodeJson({}), isJson: true, metadata: {} }], 'any')
  await append(0)
  const steps = [{ consumer: 'announcer' }, { consumer: 'places-3', stream: 'places', source: '3' }]
  let answer: boolean | undefined
  void settle({ position: 5, types: [] }, LIMIT_MS, steps).then((isSettled) => (answer = isSettled))
  await store('places-3', { 3: 0 })
  await append(1)
  await store('announcer', { all: 5 })
  await turns()
  t.equal(answer, undefined, 'the stream has grown before its step began')
  await store('places-3', { 3: 1 })
  await turns()
  t.equal(answer, true)
})

test('what another process stores is found by looking', async (t) => {
  const { elsewhere, store, clock } = await open(t)
  let answer: boolean | undefined
  void elsewhere.reached('hubs', { all: 3 }, LIMIT_MS).then((isReached) => (answer = isReached))
  await turns()
  await store('hubs', { all: 3 })
  await turns()
  t.equal(answer, undefined)
  clock.advance(20)
  await turns()
  t.equal(answer, true)
  t.equal(await elsewhere.reached('hubs', { all: 2 }, 0), true, 'what is there needs no time')
})

test('nothing is waited for after the time is over, and a table that fails is told', async (t) => {
  const { tables, clock, elsewhere } = await open(t)
  const late = elsewhere.reached('hubs', { all: 3 }, LIMIT_MS)
  await turns()
  clock.advance(LIMIT_MS)
  t.equal(await late, false)
  const failing = Object.assign(Object.create(tables), {
    checkpoint: async () => {
      throw new Error('the tables are down')
    },
  })
  await t.rejects(new Checkpoints(failing, clock).reached('hubs', { all: 3 }, LIMIT_MS), /down/)
})

test('a checkpoint that is reset is not taken for the one before', async (t) => {
  const { checkpoints, store, tables, clock } = await open(t)
  await store('hubs', { all: 9 })
  t.equal(await checkpoints.reached('hubs', { all: 9 }, 0), true)
  await tables.reset([], 'hubs')
  const waiting = checkpoints.reached('hubs', { all: 9 }, LIMIT_MS)
  await turns()
  clock.advance(LIMIT_MS)
  t.equal(await waiting, false)
})

test('how far consumers changed rows is known where they run, and leaves out what they only passed over', async (t) => {
  const { tables, checkpoints, elsewhere, store } = await open(t)
  await tables.declare({ name: 'cups', version: 1 })
  const names = ['hubs', 'users']
  t.equal(await checkpoints.changedThrough(names), -1)
  await storeCheckpoint(tables, 'hubs', { all: 5 }, [{ table: 'cups', scope: 'all', id: 'a', row: { name: 'A' } }])
  await store('users', { all: 3 })
  t.equal(await checkpoints.changedThrough(names), 5)
  await store('users', { all: 90 })
  t.equal(await checkpoints.changedThrough(names), 5)
  t.equal(await elsewhere.changedThrough(names), 90, 'another process does not know what it only passed over')
})
