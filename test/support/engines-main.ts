import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openClickhouseFront } from './clickhouse/front.ts'
import { openEventstoredbServer } from './eventstoredb/server.ts'
import { openRedisServer } from './redis-server.ts'

// npm run engines: a log server of the tests, a real redis-server, and ClickHouse's HTTP interface over the engine in
// process, on loopback. Prints their URLs as one line of JSON and ends with SIGTERM or SIGINT.
const folder = mkdtempSync(join(tmpdir(), 'waymark-engines-'))
const log = await openEventstoredbServer({ path: join(folder, 'log') })
const tables = await openRedisServer(folder)
const store = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
const history = await openClickhouseFront({ store })
process.stdout.write(`${JSON.stringify({ log: log.url, tables: tables.url, history: history.url })}\n`)

let isEnding = false
const end = async (): Promise<void> => {
  if (isEnding) return
  isEnding = true
  await Promise.all([log.close(), tables.kill(), history.close()])
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}
process.on('SIGTERM', () => void end())
process.on('SIGINT', () => void end())
