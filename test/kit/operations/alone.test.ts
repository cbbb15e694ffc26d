import { test, type Test } from 'tap'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { alone } from '../../../src/kit/operations/alone.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { until } from '../../support/service.ts'

const open = async (t: Test) => {
  const clock = new FakeClock()
  const tables = await openLmdbTableStore({ path: folderOf(t), clock })
  t.teardown(() => tables.close())
  const as = (owner: string) => ({ tables, clock, owner })
  return { clock, tables, as }
}

/** Something that runs until it is told to end. */
const task = () => {
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  const state = { running: false, end }
  return Object.assign(state, {
    run: async () => {
      state.running = true
      await ended
      state.running = false
    },
  })
}

test('one runs at a time under a name, and however long it takes nobody takes its place', async (t) => {
  const { clock, as } = await open(t)
  const [first, second, other] = [task(), task(), task()]
  const done = [alone('a', as('one'), first.run)]
  await until('the first runs', () => first.running)
  done.push(alone('a', as('two'), second.run), alone('b', as('two'), other.run))
  await until('another name is another thing', () => other.running)
  for (let i = 0; i < 50; i++) {
    clock.advance(2_000)
    await new Promise((resume) => setImmediate(resume))
    t.notOk(second.running)
  }
  first.end()
  await until('the second has its turn', async () => {
    clock.advance(500)
    return second.running
  })
  second.end()
  other.end()
  await Promise.all(done)
})

test('what fails gives its place back, and so does a process that died', async (t) => {
  const { clock, tables, as } = await open(t)
  await t.rejects(
    alone('a', as('one'), () => Promise.reject(new Error('no'))),
    /no/,
  )
  t.equal(await alone('a', as('two'), async () => 7), 7)
  await tables.putIfAbsent({
    table: 'owners',
    scope: '-',
    id: 'a',
    row: { owner: 'dead' },
    expiresAt: clock.now() + 30_000,
  })
  const next = task()
  const done = alone('a', as('three'), next.run)
  await until('it is given up', async () => {
    clock.advance(500)
    return next.running
  })
  next.end()
  await done
})
