import { isDeepStrictEqual } from 'node:util'
import { test } from 'tap'
import type { Checkpoint } from '../../src/engines/table-store.ts'
import { lacksHistory } from '../../src/operations/log-reaches.ts'

test('an empty history under tables that know of points in it is noticed', async (t) => {
  const historyOf = (...names: string[]) => ({
    rows: async <R extends object>(_sql: string, parameters?: object) => {
      const count = names.filter((name) => isDeepStrictEqual(parameters, { name })).length
      return [{ count, tables: count }] as unknown as R[]
    },
  })
  const used = historyOf('points', 'schema_versions')
  const tablesOf = (checkpoint: Checkpoint | undefined) => ({
    checkpoint: async (consumer: string) => (consumer === 'location-history-3' ? checkpoint : undefined),
  })
  t.equal(await lacksHistory(historyOf(), tablesOf({ 3: 17 }), 4), true)
  t.equal(await lacksHistory(used, tablesOf({ 3: 17 }), 4), false, 'it is the one that was used')
  const early = historyOf('points')
  t.equal(await lacksHistory(early, tablesOf({ 3: 17 }), 4), false, 'also by a version that did not number its schema')
  t.equal(await lacksHistory(historyOf(), tablesOf({ 3: -1 }), 4), false, 'nothing was stored yet')
  t.equal(await lacksHistory(historyOf(), tablesOf(undefined), 4), false, 'the first start')
})
