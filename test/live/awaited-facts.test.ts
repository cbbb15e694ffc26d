import { test } from 'tap'
import { AwaitedFacts } from '../../src/live/awaited-facts.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('nothing is awaited of a tracker that was deleted, whose last decisions come after it', async (t) => {
  const awaited = new AwaitedFacts(new FakeClock())
  const waiting = awaited.of('t1')
  t.not(waiting, undefined)
  awaited.gone('t1')
  await waiting
  t.equal(awaited.of('t1'), undefined)
})
