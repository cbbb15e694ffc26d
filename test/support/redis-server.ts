import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { createClient } from 'redis'
import { freePort } from './free-port.ts'

/** A real `redis-server` on loopback, ended by its process id. */
export interface RedisServer {
  url: string
  port: number
  process: ChildProcess
  kill(signal?: NodeJS.Signals): Promise<void>
}

/** Whether the Debian package is installed; without it tests of the engine are skipped aloud. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0
/** For tests that need it. */
export const withoutRedis = hasRedis ? false : 'redis-server is not installed (apt-get install redis-server)'

/**
 * @param args further options of the server, such as `['--appendonly', 'yes']`
 * @param config a file with what is no option, as of a sentinel, which keeps no data
 */
export const openRedisServer = async (
  folder: string,
  args: string[] = [],
  port?: number,
  config?: string,
): Promise<RedisServer> => {
  const at = port ?? (await freePort())
  const options = ['--port', String(at), '--bind', '127.0.0.1', '--dir', folder, '--daemonize', 'no']
  const keeping = ['--save', '', '--maxmemory-policy', 'noeviction']
  const all = config === undefined ? [...options, ...keeping, ...args] : [config, ...options, ...args]
  const child = spawn('redis-server', all, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  const isReady = (line: string): boolean => /Ready to accept|Sentinel ID is/.test(line)
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(line)
    if (isReady(line)) break
  }
  if (!lines.some(isReady)) throw new Error(`redis-server ended before it served: ${lines.slice(-3).join('\n')}`)
  child.stdout!.resume()
  return {
    url: `redis://127.0.0.1:${at}`,
    port: at,
    process: child,
    kill: async (signal = 'SIGTERM') => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await once(child, 'exit')
    },
  }
}

/** A client beside the engine, for what a test does to the server itself. Whoever opens it destroys it. */
export const openClient = async (url: string) => {
  const admin = createClient({ url, RESP: 2 })
  admin.on('error', () => undefined) // the server may be killed under it
  await admin.connect()
  return admin
}
