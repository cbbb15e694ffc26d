import { test } from 'tap'
import { ThreadTurns, type ThreadUser } from '../../src/engines/chdb/turns.ts'

const settle = (): Promise<void> => new Promise((resume) => setImmediate(resume))

test('who has used the threads least goes first', async (t) => {
  let now = 0
  const turns = new ThreadTurns(2, () => now)
  const order: string[] = []
  const ends: (() => void)[] = []
  const ask = (name: string, user: ThreadUser): void => {
    void turns.run(user, () => {
      order.push(name)
      return new Promise<void>((end) => ends.push(end))
    })
  }
  const endNext = async (): Promise<void> => {
    now += 100
    ends.shift()?.()
    await settle()
  }
  const exports = ['a', 'b', 'c'].map((name) => ({ name, user: { usedMs: 0 } }))
  for (const { name, user } of exports) ask(name, user)
  await settle()
  t.same(order, ['a', 'b'], 'two at once')
  await endNext()
  ask('a again', exports[0].user)
  await endNext()
  ask('b again', exports[1].user)
  t.same(order, ['a', 'b', 'c', 'a again'], 'in their order while all have used as much')
  t.same(
    exports.map(({ user }) => user.usedMs),
    [100, 200, 0],
  )
  ask('one look', { usedMs: 0 })
  await endNext()
  t.equal(order[4], 'one look')
  for (let i = 0; i < 3; i++) await endNext()
  t.same(order.slice(5), ['b again'])
})

test('who has used much gets its turn although others who have used nothing keep coming', async (t) => {
  let now = 0
  const turns = new ThreadTurns(1, () => now)
  const looks: Promise<void>[] = []
  const look = (): void => {
    const began = turns.run({ usedMs: 0 }, async () => {
      now += 100
      if (looks.length < 300) look()
    })
    looks.push(began)
  }
  look()
  let hadTurnAt = Number.POSITIVE_INFINITY
  const hadTurn = turns.run({ usedMs: 3_600_000 }, async () => {
    hadTurnAt = now
  })
  await Promise.all([hadTurn, ...looks])
  t.ok(hadTurnAt <= 10_200, `after ${hadTurnAt} ms`)
})

test('a call that fails gives its thread back', async (t) => {
  const turns = new ThreadTurns(1, () => 0)
  const user = { usedMs: 0 }
  await t.rejects(
    turns.run(user, () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
  t.equal(await turns.run(user, async () => 'yes'), 'yes')
})
