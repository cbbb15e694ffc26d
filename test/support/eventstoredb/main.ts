import { openEventstoredbServer } from './server.ts'

// node dist/test/support/eventstoredb/main.js <file> [port]: prints its connection string and serves until SIGTERM.
const [path, port = '0'] = process.argv.slice(2)
const server = await openEventstoredbServer({ path, port: Number(port) })
process.stdout.write(`${server.url}\n`)
process.once('SIGTERM', () => void server.close())
