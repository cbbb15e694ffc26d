import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, readdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { until } from '../support/service.ts'

/** The ways in which a person starts the service: each puts npm, and some a shell, above it. */
const STARTS: [string, string, string[]][] = [
  ['npm start', 'npm', ['start', '--ignore-scripts', '--']],
  ['npx waymark', 'npx', ['waymark', 'start']],
]

interface Started {
  npm: ChildProcess
  pid: number
  lines: string[]
}

const startBelowNpm = async (command: string, args: string[], data: string): Promise<Started> => {
  const npm = spawn(command, [...args, '--port', '0', '--data', data], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const lines: string[] = []
  createInterface({ input: npm.stdout! }).on('line', (line) => lines.push(line))
  const has = (text: string): boolean => lines.some((line) => line.includes(text))
  await until('the service below npm', () => has('"listening"') || npm.exitCode !== null)
  const { pid } = JSON.parse(lines.find((line) => line.includes('"listening"')) ?? '{}')
  return { npm, pid, lines }
}

/** Waits until all that was printed is here. */
const closed = (npm: ChildProcess): Promise<unknown> | undefined =>
  npm.stdout?.closed === true ? undefined : new Promise((done) => npm.once('close', done))

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('what is built can be run by its name', async (t) => {
  // npx makes it so where it installs, once: a link that it keeps would point to a later build, which is not.
  t.doesNotThrow(() => accessSync('dist/src/main.js', constants.X_OK))
})

for (const [name, command, args] of STARTS)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    test(`${signal} to ${name} ends the service, in good order`, { timeout: 900_000 }, async (t) => {
      const { npm, pid, lines } = await startBelowNpm(command, args, folderOf(t))
      t.teardown(() => isAlive(pid) && process.kill(pid, 'SIGKILL'))
      t.ok(isAlive(pid), `the service runs as ${pid}, npm as ${npm.pid}`)
      npm.kill(signal)
      await until('the end of the service', () => !isAlive(pid))
      await closed(npm)
      t.match(lines.at(-1), '"stopped"', 'its last word is that it has stopped')
    })

test('Ctrl+C, which npm passes on a second time, stops the service in good order', { timeout: 900_000 }, async (t) => {
  for (const [name, command, args] of STARTS) {
    const { npm, pid, lines } = await startBelowNpm(command, args, `${folderOf(t)}/${command}`)
    t.teardown(() => isAlive(pid) && process.kill(pid, 'SIGKILL'))
    process.kill(-npm.pid!, 'SIGINT')
    await until('the end of the service', () => !isAlive(pid))
    await closed(npm)
    t.match(lines.at(-1), '"stopped"', `${name}: its last word is that it has stopped`)
  }
})

const isFree = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.once('connect', () => done(false)).once('error', () => done(true))
    socket.once('connect', () => socket.destroy())
  })

/** `npm run engines`, or what it starts, with a temporary folder of its own. */
const startEngines = async (command: string, args: string[], folder: string): Promise<[ChildProcess, number[]]> => {
  const stdio = ['ignore', 'pipe', 'ignore'] as const
  const child = spawn(command, args, { stdio: [...stdio], env: { ...process.env, TMPDIR: folder } })
  for await (const line of createInterface({ input: child.stdout! }))
    if (line.startsWith('{')) {
      child.stdout!.resume()
      const urls = JSON.parse(line) as { [engine: string]: string }
      return [child, Object.values(urls).map((url) => Number(new URL(url.replace(/^\w+:/, 'http:')).port))]
    }
  throw new Error('it ended without a line of JSON')
}

for (const [name, command, args, signal] of [
  ['npm run engines', 'npm', ['run', 'engines', '--ignore-scripts'], 'SIGTERM'],
  ['npm run engines', 'npm', ['run', 'engines', '--ignore-scripts'], 'SIGKILL'],
  ['the engines themselves', process.execPath, ['dist/test/support/engines-main.js'], 'SIGKILL'],
] as [string, string, string[], NodeJS.Signals][])
  test(`${signal} to ${name} ends them all and leaves nothing`, {
    skip: withoutRedis,
    timeout: 900_000,
  }, async (t) => {
    const folder = folderOf(t)
    const [child, ports] = await startEngines(command, args, folder)
    t.equal(ports.length, 3)
    for (const port of ports) t.notOk(await isFree(port), `${port} is served`)
    child.kill(signal)
    const areFree = async () => (await Promise.all(ports.map(isFree))).every(Boolean)
    await until('free ports', areFree)
    await until('an empty folder', () => readdirSync(folder).length === 0)
  })
