import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'

/** A real `redis-server` on loopback, ended by its process id. */
export interface RedisServer {
  url: string
  port: number
  process: ChildProcess
  kill(signal?: NodeJS.Signals): Promise<void>
}

/** Whether the Debian package is installed; without it tests of the engine are skipped aloud. */
export const hasRedis = (): boolean => spawnSync('redis-server', ['--version']).status === 0

export const freePort = async (): Promise<number> => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** @param args further options of the server, such as `['--appendonly', 'yes']` */
export const openRedisServer = async (folder: string, args: string[] = [], port?: number): Promise<RedisServer> => {
  const at = port ?? (await freePort())
  const options = ['--port', String(at), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no']
  const child = spawn('redis-server', [...options, '--maxmemory-policy', 'noeviction', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout! })) if (/Ready to accept/.test(line)) break
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
