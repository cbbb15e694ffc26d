import { setFlagsFromString } from 'node:v8'
import { openEventstoredbServer } from './server.ts'

// node dist/test/support/eventstoredb/main.js <file> [port]: prints its connection string and serves until SIGTERM.
// What it keeps is small, and what passes through is large: else it would spend most of its time collecting garbage.
setFlagsFromString('--heap-growing-percent=400')
const [path, port = '0'] = process.argv.slice(2)
const server = await openEventstoredbServer({ path, port: Number(port) })
process.stdout.write(`${server.url}\n`)
process.once('SIGTERM', () => void server.close())
