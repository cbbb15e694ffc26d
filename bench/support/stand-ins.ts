import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startProcess } from '../../test/support/engine-servers.ts'
import { openRedisServer } from '../../test/support/redis-server.ts'

/** URLs of the engines to measure. */
export interface EngineUrls {
  log: string
  tables: string
  history: string
}

export interface Servers {
  urls: EngineUrls
  /** Of those that were started here. */
  pids: { [Name in keyof EngineUrls]?: number }
  close(): Promise<void>
}

/** The flags of the service that choose these engines. */
export const flagsOf = ({ log, tables, history }: EngineUrls): string[] => [
  ...['--log', log],
  ...['--tables', tables],
  ...['--history', history],
]

/**
 * The named servers, and for the rest the stand-ins of the tests: the double of EventStoreDB, a real `redis-server`,
 * and ClickHouse's HTTP interface over the engine in process, each a process of its own.
 */
export const openServers = async (folder: string, given: Partial<EngineUrls>): Promise<Servers> => {
  const children: ChildProcess[] = []
  const pids: Servers['pids'] = {}
  const kept = (name: keyof EngineUrls, child: ChildProcess): void => {
    children.push(child)
    pids[name] = child.pid
  }
  for (const name of ['tables', 'history']) mkdirSync(join(folder, name), { recursive: true })
  const log = async (): Promise<string> => {
    const { child, port } = await startProcess('dist/test/support/eventstoredb/main.js', join(folder, 'log'))
    kept('log', child)
    return `esdb://127.0.0.1:${port}?tls=false`
  }
  const tables = async (): Promise<string> => {
    const server = await openRedisServer(join(folder, 'tables'), ['--appendonly', 'yes', '--appendfsync', 'everysec'])
    kept('tables', server.process)
    return server.url
  }
  const history = async (): Promise<string> => {
    const { child, port } = await startProcess('dist/test/support/clickhouse/main.js', join(folder, 'history'))
    kept('history', child)
    return `http://127.0.0.1:${port}`
  }
  const urls = {
    log: given.log ?? (await log()),
    tables: given.tables ?? (await tables()),
    history: given.history ?? (await history()),
  }
  const close = async (): Promise<void> => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
  return { urls, pids, close }
}
