import { test } from 'tap'
import { untilDone } from '../../../src/kit/consumers/retry.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resume) => setImmediate(resume))
}

test('what fails is tried again after its pauses, the last of which repeats', async (t) => {
  const clock = new FakeClock()
  const failures: unknown[] = []
  let left = 3
  const run = async (): Promise<void> => {
    if (left-- > 0) throw new Error(`${left} left`)
  }
  let isDone = false
  const done = untilDone(run, {
    clock,
    signal: new AbortController().signal,
    retryMs: [100, 500],
    onFailure: (error) => failures.push(String(error)),
  }).then(() => (isDone = true))
  for (const [ms, failed] of [
    [0, 1],
    [99, 1],
    [1, 2],
    [499, 2],
    [1, 3],
    [499, 3],
  ]) {
    clock.advance(ms)
    await turns()
    t.equal(failures.length, failed)
  }
  t.notOk(isDone)
  clock.advance(1)
  await done
  t.same(failures, ['Error: 2 left', 'Error: 1 left', 'Error: 0 left'])
})

test('an abort ends the pause and the attempts', async (t) => {
  const abort = new AbortController()
  let attempts = 0
  const run = async (): Promise<void> => {
    attempts++
    throw new Error('never')
  }
  const done = untilDone(run, { clock: new FakeClock(), signal: abort.signal, retryMs: [5_000], onFailure: () => {} })
  await turns()
  abort.abort()
  await done
  t.equal(attempts, 1)
})
