import { join } from 'node:path'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { blockOf } from './history-store.ts'

/** Inserts without end and says each id that was acknowledged; its parent kills it. */
const folder = process.argv[2]
const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
await store.command(
  'CREATE TABLE kept (id UInt32, text String) ENGINE = MergeTree ORDER BY id SETTINGS fsync_after_insert = 1',
)
for (let id = 0; ; id++) {
  await store.insert('kept', blockOf([id]), `token ${id}`)
  process.stdout.write(`${id}\n`)
}
