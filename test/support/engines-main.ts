import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stopSignal } from '../../src/cli/stop-signal.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openClickhouseFront } from './clickhouse/front.ts'
import { openEventstoredbServer } from './eventstoredb/server.ts'
import { hasRedis, openRedisServer } from './redis-server.ts'

// npm run engines: a log server of the tests, a real redis-server, and ClickHouse's HTTP interface over the engine in
// process, on loopback. Prints their URLs as one line of JSON; ends with SIGTERM, SIGINT or the npm that started it.

/** Ends the server and removes the folder once this process is gone, also by SIGKILL: the pipe to it closes then. */
const endWithThisProcess = (pid: number, folder: string): void => {
  const script = 'read -r _; kill "$1" 2>/dev/null; rm -rf "$2"'
  const args = ['-c', script, 'sh', String(pid), folder]
  spawn('sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true }).unref()
}

const run = async (): Promise<void> => {
  const stop = stopSignal()
  const folder = mkdtempSync(join(tmpdir(), 'waymark-engines-'))
  const tables = await openRedisServer(folder)
  endWithThisProcess(tables.process.pid as number, folder)
  const log = await openEventstoredbServer({ path: join(folder, 'log') })
  const store = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
  const history = await openClickhouseFront({ store })
  if (!stop.isAsked())
    process.stdout.write(`${JSON.stringify({ log: log.url, tables: tables.url, history: history.url })}\n`)
  await stop.asked
  await Promise.all([log.close(), tables.kill(), history.close()])
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}

if (hasRedis) await run()
else {
  process.stderr.write('npm run engines needs redis-server; on Debian and Ubuntu: apt-get install redis-server\n')
  process.exitCode = 2
}
