import { join } from 'node:path'
import { test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import { openClickhouseFront } from '../support/clickhouse/front.ts'
import { folderOf } from '../support/folder-of.ts'
import { historyStoreContract } from './history-store.ts'

const REAL = process.env.WAYMARK_TEST_CLICKHOUSE

test('a ClickHouse server keeps the promises of the history', async (t) => {
  if (REAL !== undefined) {
    t.comment('on the server of WAYMARK_TEST_CLICKHOUSE')
    return historyStoreContract(t, { open: (options) => openClickhouseHistory({ url: REAL, ...options }) })
  }
  t.comment('on the HTTP front over the engine in process; WAYMARK_TEST_CLICKHOUSE=http://… names a real server')
  const folder = folderOf(t)
  const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const front = await openClickhouseFront({ store })
  await historyStoreContract(t, { open: (options) => openClickhouseHistory({ url: front.url, ...options }) })
  await front.close()
  await store.close()
})
