import { test } from 'tap'
import type { HistoryReader } from '../../../src/engines/history-store.ts'
import { OWN_OPEN_MAX, ownShares } from '../../../src/kit/http/own-share.ts'

test('answers that nobody reads on keep no other organization from the history', async (t) => {
  let open = 0
  const history: HistoryReader = {
    rows: async () => [],
    query: async function* () {
      open++
      try {
        for (;;) yield new Uint8Array(1)
      } finally {
        open--
      }
    },
  }
  const shares = ownShares(history)
  const ask = async (organization: string) => {
    const answer = shares.query('', { organization }, 'Native')[Symbol.asyncIterator]()
    await answer.next()
    return answer
  }
  const own = []
  for (let i = 0; i < OWN_OPEN_MAX; i++) own.push(await ask('a'))
  await t.rejects(ask('a'), { code: 'overloaded' })
  const other = await ask('b')
  t.equal(open, OWN_OPEN_MAX + 1)
  await own[0].return?.()
  own[0] = await ask('a')
  await t.rejects(ask('a'), { code: 'overloaded' }, 'one was closed, and one opened')
  for (const answer of [...own, other]) await answer.return?.()
  t.equal(open, 0)
})
