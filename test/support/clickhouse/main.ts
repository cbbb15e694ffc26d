import { join } from 'node:path'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { openClickhouseFront } from './front.ts'

// node dist/test/support/clickhouse/main.js <folder> [port]: prints its URL and serves until SIGTERM.
const [path, port = '0'] = process.argv.slice(2)
const store = await openChdbHistoryStore({ path: join(path, 'history'), scratchPath: join(path, 'scratch') })
const front = await openClickhouseFront({ store, port: Number(port) })
process.stdout.write(`${front.url}\n`)
process.once('SIGTERM', () => void front.close().then(() => store.close()))
