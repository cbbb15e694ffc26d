import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
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
