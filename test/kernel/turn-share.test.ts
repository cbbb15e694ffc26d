import { test } from 'tap'
import { TurnShare } from '../../src/kernel/turn-share.ts'

const LIMITS = { least: 5, most: 50, times: 0.5 }

test('a turn gets longer as all else takes longer, within its limits', async (t) => {
  const share = new TurnShare(LIMITS)
  const turnAfter = (others: number): number => {
    share.ask(1_000)
    return share.begin(1_000 + others) - (1_000 + others)
  }
  t.equal(turnAfter(0), 5, 'nothing else to do')
  t.equal(turnAfter(8), 5)
  t.equal(turnAfter(40), 20, 'half as long as the rest')
  t.equal(turnAfter(380), 50, 'never so long that the rest waits for it')
})

test('a turn that nobody waited for gets the least, however long nothing was done', async (t) => {
  const share = new TurnShare(LIMITS)
  t.equal(share.begin(5_000), 5_005)
  share.ask(6_000)
  share.begin(6_100)
  t.equal(share.begin(9_000), 9_005, 'what was asked for counts once')
})
