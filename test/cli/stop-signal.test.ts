import { test } from 'tap'
import { endsInTime } from '../../src/cli/stop-signal.ts'
import { FakeClock } from '../support/fake-clock.ts'

const NEVER = new Promise(() => undefined)

test('the end of the service is waited for as long as its supervisor waits, and no longer', async (t) => {
  const clock = new FakeClock(0)
  const late = endsInTime(NEVER, clock, 1_000)
  const inTime = endsInTime(Promise.resolve(), clock, 1_000)
  t.equal(await inTime, true)
  clock.advance(1_000)
  t.equal(await late, false)
  await t.rejects(endsInTime(Promise.reject(new Error('no')), clock, 1_000), { message: 'no' })
  t.equal(await endsInTime(Promise.resolve(), clock, undefined), true, 'embedded engines have no limit')
})
