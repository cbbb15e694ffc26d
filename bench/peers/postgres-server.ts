import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../test/support/free-port.ts'

const DEBIAN = '/usr/lib/postgresql'

/** Folder of the programs of Debian's newest PostgreSQL, if one is installed. */
export const postgresPrograms = (): string | undefined => {
  if (!existsSync(DEBIAN)) return undefined
  const [newest] = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
  return newest === undefined ? undefined : join(DEBIAN, newest, 'bin')
}

/** As its documentation advises for a machine of its own: a quarter of the memory or less, and few checkpoints. */
const TUNED = {
  shared_buffers: '1GB',
  effective_cache_size: '4GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '15min',
  wal_compression: 'on',
  random_page_cost: '1.1',
  max_connections: '50',
  synchronous_commit: 'on',
}

/** The user that the Debian package makes: the server refuses to run as root. */
const OWNER = 'postgres'

const ownerIds = (): { uid: number; gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string): number => Number(String(spawnSync('id', [flag, OWNER]).stdout))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** A server on loopback in a folder of its own, which trusts whoever connects. */
export const openPostgres = async (
  programs: string,
  folder: string,
): Promise<{ url: string; kill(): Promise<void> }> => {
  const owner = ownerIds()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  chmodSync(folder, 0o700)
  const made = spawnSync(join(programs, 'initdb'), ['-D', folder, '-U', OWNER, '-A', 'trust', '-E', 'UTF8'], {
    ...owner,
    cwd: folder,
  })
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
  const port = await freePort()
  const settings = { ...TUNED, listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: folder }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(join(programs, 'postgres'), ['-D', folder, ...flags], {
    ...owner,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const lines: string[] = []
  for await (const line of createInterface({ input: server.stderr })) {
    lines.push(line)
    if (line.includes('ready to accept connections')) break
  }
  if (!lines.at(-1)?.includes('ready')) throw new Error(`postgres ended: ${lines.slice(-3).join('\n')}`)
  server.stderr.resume()
  return {
    url: `postgres://${OWNER}@127.0.0.1:${port}/${OWNER}`,
    kill: async () => {
      if (server.exitCode !== null) return
      server.kill('SIGINT')
      await once(server, 'exit')
    },
  }
}
