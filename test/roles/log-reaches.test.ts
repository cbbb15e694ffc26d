import { test } from 'tap'
import type { Checkpoint } from '../../src/engines/table-store.ts'
import { lacksHistory } from '../../src/roles/log-reaches.ts'

test('an empty history under tables that know of points in it is noticed', async (t) => {
  const historyOf = (hasTables: boolean) => ({
    rows: async <R extends object>(sql: string) =>
      [/system\.tables/.test(sql) ? { tables: hasTables ? 1 : 0 } : { done: 5 }] as unknown as R[],
  })
  const tablesOf = (checkpoint: Checkpoint | undefined) => ({
    checkpoint: async (consumer: string) => (consumer === 'location-history-3' ? checkpoint : undefined),
  })
  t.equal(await lacksHistory(historyOf(false), tablesOf({ 3: 17 }), 4), true)
  t.equal(await lacksHistory(historyOf(true), tablesOf({ 3: 17 }), 4), false, 'it is the one that was used')
  t.equal(await lacksHistory(historyOf(false), tablesOf({ 3: -1 }), 4), false, 'nothing was stored yet')
  t.equal(await lacksHistory(historyOf(false), tablesOf(undefined), 4), false, 'the first start')
})
