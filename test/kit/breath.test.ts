import { test } from 'tap'
import { breathe, inSlices, nextSlice } from '../../src/kernel/breath.ts'
import { severalAtOnce } from '../../src/kit/commands/several-at-once.ts'

/** Keeps the event loop for itself. */
const work = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

test('those who wait at once are resumed one after the other, over several turns', async (t) => {
  let turns = 0
  const count = setInterval(() => turns++, 0)
  const seen: { piece: number; turns: number }[] = []
  const run = async (piece: number): Promise<void> => {
    await breathe()
    await null // what does not wait for anything outside belongs to one piece
    seen.push({ piece, turns })
    work(12)
  }
  work(12)
  const pieces = Array.from({ length: 40 }, (_, piece) => piece)
  await Promise.all(pieces.map(run))
  t.same(
    seen.map(({ piece }) => piece),
    pieces,
    'in their order',
  )
  t.ok(
    (seen.at(-1)?.turns ?? 0) > seen[0].turns,
    'half a second of work does not fit into one turn, however long others took',
  )
  while (turns < 3) await run(0) // without a turn for timers it never ends
  clearInterval(count)
})

test('of many resumed by one event each ends before the next begins', async (t) => {
  const seen: string[] = []
  const run = async (piece: number, event: Promise<void>): Promise<void> => {
    await event
    await nextSlice()
    seen.push(`${piece} begins`)
    await null
    await null
    seen.push(`${piece} ends`)
  }
  await nextSlice() // there is breath now
  const pieces = Array.from({ length: 40 }, (_, piece) => piece)
  await Promise.all(pieces.map((piece) => run(piece, Promise.resolve())))
  t.same(
    seen,
    pieces.flatMap((piece) => [`${piece} begins`, `${piece} ends`]),
  )
})

test('slices follow one another to the end, in however many turns', async (t) => {
  const from: number[] = []
  await inSlices(10, (at) => {
    from.push(at)
    work(3)
    return at + 4
  })
  t.strictSame(from, [0, 4, 8])
  await t.rejects(
    async () =>
      inSlices(9, (at) => {
        work(6)
        if (at > 0) throw new Error('broken')
        return at + 1
      }),
    { message: 'broken' },
  )
})

test('tasks run some at once; the first failure is told when all that had begun has ended', async (t) => {
  let running = 0
  let most = 0
  const ended: number[] = []
  const task = async (item: number): Promise<void> => {
    most = Math.max(most, ++running)
    await new Promise((resume) => setImmediate(resume))
    running--
    if (item === 5) throw new Error('five')
    ended.push(item)
  }
  await severalAtOnce([0, 1, 2, 3, 4], 2, task)
  t.equal(most, 2)
  t.same(ended, [0, 1, 2, 3, 4])
  await t.rejects(severalAtOnce([5, 6, 7, 8, 9], 2, task), { message: 'five' })
  t.equal(running, 0, 'nothing runs on')
  t.notOk(ended.includes(9), 'what had not begun is left')
  await severalAtOnce([], 2, task)
})

/** Most pieces of 1 ms in one turn of 200, where sockets take the event loop for that long before each turn, in ms. */
const mostInATurn = async (clock: { now: number }, socketsMs: (turn: number) => number): Promise<number> => {
  let turn = 0
  const counts: number[] = [0]
  const sockets = (): void => {
    clock.now += socketsMs(turn)
    counts[++turn] = 0
    next = setImmediate(sockets)
  }
  let next = setImmediate(sockets)
  for (let piece = 0; piece < 200; piece++) {
    await breathe()
    counts[turn]++
    clock.now++
  }
  clearImmediate(next)
  return Math.max(...counts)
}

test('turns are longer where sockets never rest, and not after one long wait', async (t) => {
  const clock = { now: performance.now() }
  t.intercept(performance, 'now', { value: () => clock.now })
  const quiet = await mostInATurn(clock, () => 0)
  t.ok(quiet < 10, `${quiet} ms`)
  t.equal(await mostInATurn(clock, (turn) => (turn === 3 ? 50 : 0)), quiet)
  const busy = await mostInATurn(clock, () => 50)
  t.ok(busy > 100, `${busy} ms`)
})
