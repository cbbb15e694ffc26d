import { test } from 'tap'
import { CommitPace } from '../../projections/commit-pace.ts'

test('commits that take long are further apart, a single one is not', async (t) => {
  const pace = new CommitPace()
  pace.rows = 1_001
  t.equal(pace.pauseMs(50), 1_000)
  t.equal(pace.pauseMs(1_500), 1_000, 'held up once, by a takeover')
  t.equal(pace.pauseMs(600), 2_400)
  t.equal(pace.pauseMs(60_000), 2_400, 'slept')
  t.equal(pace.pauseMs(60_000), 4_000, 'but rows do not wait longer than this')
})

test('few rows are committed sooner than many, where that costs little', async (t) => {
  const pace = new CommitPace()
  t.equal(pace.waitMs, 20)
  t.equal(pace.pauseMs(4), 20)
  t.equal(pace.pauseMs(5), 40, 'a tenth of the time')
  t.equal(pace.waitMs, 50)
  pace.pauseMs(300)
  t.equal(pace.waitMs, 200, 'the first of them never waits longer than this')
  t.equal(pace.pauseMs(300), 1_200)
  pace.rows = 1_001
  t.equal(pace.waitMs, 1_000)
})
