import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { folderOf } from './folder-of.ts'
import { openRedisServer } from './redis-server.ts'
import { TcpProxy } from './tcp-proxy.ts'

export type EngineName = 'log' | 'tables' | 'history'
export const ENGINES: readonly EngineName[] = ['log', 'tables', 'history']

/** One engine as a process of its own behind a proxy whose port stays. */
export interface EngineServer {
  proxy: TcpProxy
  /** SIGKILL, and started again on the same files. */
  killAndStart(): Promise<void>
}

/** The three production engines as the tests have them, killable and behind proxies, and the flags that name them. */
export interface EngineServers {
  flags: string[]
  servers: { [Name in EngineName]: EngineServer }
}

/** Starts them below a folder; they end with the test. */
export const startEngines = async (t: Test, folder: string): Promise<EngineServers> => {
  const paths = { log: join(folder, 'log'), tables: join(folder, 'tables'), history: join(folder, 'history') }
  mkdirSync(paths.tables, { recursive: true })
  mkdirSync(paths.history, { recursive: true })
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always']
  const starts: { [Name in EngineName]: () => Promise<Started> } = {
    log: () => startProcess('dist/test/support/eventstoredb/main.js', paths.log),
    tables: async () => {
      const { process, port } = await openRedisServer(paths.tables, durable)
      return { child: process, port }
    },
    history: () => startProcess('dist/test/support/clickhouse/main.js', paths.history),
  }
  const [log, tables, history] = await Promise.all(ENGINES.map((name) => serverOf(t, starts[name])))
  const flags = [
    ...['--log', `esdb://127.0.0.1:${log.proxy.port}?tls=false`],
    ...['--tables', `redis://127.0.0.1:${tables.proxy.port}`],
    ...['--history', `http://127.0.0.1:${history.proxy.port}`],
  ]
  return { flags, servers: { log, tables, history } }
}

interface Started {
  child: ChildProcess
  port: number
}

const serverOf = async (t: Test, start: () => Promise<Started>): Promise<EngineServer> => {
  let running = await start()
  const proxy = await TcpProxy.open(running.port)
  t.teardown(async () => {
    await proxy.close()
    await killed(running.child)
  })
  return {
    proxy,
    killAndStart: async () => {
      await killed(running.child)
      running = await start()
      proxy.target = running.port
    },
  }
}

/** Starts a script that prints its URL as its first line. */
export const startProcess = async (script: string, path: string, folder = '.'): Promise<Started> => {
  const child = spawn(process.execPath, [resolve(script), path], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    child.stdout.resume()
    return { child, port: Number(new URL(line).port) }
  }
  throw new Error(`${script} ended before it served`)
}

const killed = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** A cluster of one shard with one replica, which the engine in process can be: it talks to no other and has no keeper. */
const CLUSTER = `<clickhouse><tcp_port>9000</tcp_port><remote_servers><main><shard>
<internal_replication>true</internal_replication><replica><host>127.0.0.1</host><port>9000</port></replica>
</shard></main></remote_servers></clickhouse>`

/** Starts the front over that; answers its URL, with `?cluster=`. */
export const openClusterFront = async (t: Test): Promise<string> => {
  const folder = join(folderOf(t), randomUUID())
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'config.xml'), CLUSTER)
  const { child, port } = await startProcess('dist/test/support/clickhouse/main.js', join(folder, 'data'), folder)
  t.teardown(() => child.kill('SIGKILL'))
  return `http://127.0.0.1:${port}/default?cluster=main`
}
