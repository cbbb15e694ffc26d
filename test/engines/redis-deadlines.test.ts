import { stat } from 'node:fs/promises'
import { test } from 'tap'
import { Deadlines } from '../../src/engines/redis-tables/deadlines.ts'

const DEADLINE_MS = 50

/** Nothing runs in this process meanwhile, as while it is stopped. */
const standStill = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const late = (): Error => new Error('late')

test('an answer that came while the process stood still is taken; what has none is late', async (t) => {
  const deadlines = new Deadlines(DEADLINE_MS)
  await new Promise((resume) => setImmediate(resume)) // timers come next
  const answered = deadlines.within(() => stat('.'), late)
  const silent = deadlines.within(() => new Promise(() => undefined), late)
  standStill(4 * DEADLINE_MS)
  t.ok((await answered).isDirectory())
  const keepAlive = setTimeout(() => undefined, 10_000)
  await t.rejects(silent, late())
  clearTimeout(keepAlive)
})
