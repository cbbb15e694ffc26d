import { join } from 'node:path'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'

// Exits while queries are open: one is read by nobody, others have just begun.
const [, , folder, pauseMs] = process.argv
const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
const sql = 'SELECT number, toString(number) FROM numbers(100000000)'
const read = async (): Promise<void> => {
  for await (const _chunk of store.query(sql, {}, 'JSONEachRow')) break
}
const rows = store.query(sql, {}, 'JSONEachRow')[Symbol.asyncIterator]()
await rows.next()
for (let i = 0; i < 3; i++) read().catch(() => undefined)
setTimeout(() => process.exit(0), Number(pauseMs))
