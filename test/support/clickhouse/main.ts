import { join } from 'node:path'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { type FrontFault, openClickhouseFront } from './front.ts'

/** What a parent process may send; each is answered with how many requests hang, once it is so. */
export interface FrontOrder {
  fault?: FrontFault | 'none'
  delayMs?: number
  isListening?: boolean
}

// node dist/test/support/clickhouse/main.js <folder> [port]: prints its URL and serves until SIGTERM.
const [path, port = '0'] = process.argv.slice(2)
const store = await openChdbHistoryStore({ path: join(path, 'history'), scratchPath: join(path, 'scratch') })
const front = await openClickhouseFront({ store, port: Number(port) })
process.stdout.write(`${front.url}\n`)
process.once('SIGTERM', () => void front.close().then(() => store.close()))

const obey = async ({ fault, delayMs, isListening }: FrontOrder): Promise<void> => {
  if (fault !== undefined) front.fault = fault === 'none' ? undefined : fault
  if (delayMs !== undefined) front.delayMs = delayMs
  if (isListening === true) await front.listen()
  if (isListening === false) await front.refuse()
  process.send?.(front.hanging)
}
process.on('message', (order: FrontOrder) => void obey(order))
