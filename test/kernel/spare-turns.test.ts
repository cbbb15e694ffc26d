import { test } from 'tap'
import { SpareTurns } from '../../src/kernel/spare-turns.ts'

const PIECES = 12
const PIECE_MS = 3

/** Works in pieces; answers how often the event loop went on between them. */
const pauses = async (turnMs: number): Promise<number> => {
  const turns = new SpareTurns({ least: turnMs, most: turnMs, times: 1 })
  let count = 0
  for (let piece = 0; piece < PIECES; piece++) {
    const pause = turns.next()
    if (pause !== undefined) {
      count++
      await pause
    }
    const end = performance.now() + PIECE_MS
    while (performance.now() < end);
  }
  return count
}

test('each piece waits for its turn, and a turn lasts as long as its share', async (t) => {
  t.equal(await pauses(PIECE_MS - 1), PIECES, 'a piece fills a turn')
  t.equal(await pauses(60_000), 1, 'all of them fit into one')
})
