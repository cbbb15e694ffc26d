import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'

export const HAPROXY_FILE = 'deploy/haproxy/haproxy.cfg'

/** For tests that need it. */
export const withoutHaproxy =
  spawnSync('haproxy', ['-v']).status === 0 ? false : 'haproxy is not installed (apt-get install haproxy)'

/** HAProxy with the file that docker-compose.yml gives it, before processes of this machine by their names there. It ends with the test. */
export const openHaproxy = async (
  t: Test,
  folder: string,
  portOf: (name: string) => number,
): Promise<{ url: string; stop(): Promise<number | null> }> => {
  const [port, metricsPort] = [await freePort(), await freePort()]
  const text = readFileSync(HAPROXY_FILE, 'utf8')
    .replace(/^( +server (\S+)) \S+:8080$/gm, (_, begun, name) => `${begun} 127.0.0.1:${portOf(name)}`)
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('bind :8405', `bind 127.0.0.1:${metricsPort}`)
    // What the limit of open files of this machine allows.
    .replace('maxconn 30000', 'maxconn 400')
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  t.teardown(() => void child.kill('SIGKILL'))
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGUSR1')
      return (await exited)[0]
    },
  }
}
