// Runs the command that starts the service, as a reader of README.md would: waits until it is ready, asks for the page, ends
// it by SIGTERM to what was started, and expects nothing to be left behind. Usage: node scripts/check-start.mjs '<command>'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Limits end what hangs: the first one has to hold an installation and a compilation on a slow machine, too. */
const LIMIT_MS = 600_000
const END_MS = 60_000

/** `exec` as a shell at a terminal would see it: the signal goes to npm, not to a shell around it. */
const commandOf = (text) => {
  const steps = text.trim().split(/\s*&&\s*/)
  return [...steps.slice(0, -1), `exec ${steps.at(-1)}`].join(' && ')
}

const main = async () => {
  const child = spawn('bash', ['-c', commandOf(process.argv[2])], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, WAYMARK_PORT: '0' },
  })
  process.once('exit', () => endGroup(child.pid))
  const exited = new Promise((done) => child.once('exit', (code, signal) => done(code ?? signal)))
  const url = await Promise.race([
    listening(child),
    exited.then((code) => Promise.reject(new Error(`it ended with ${code} before it was listening`))),
    sleep(LIMIT_MS).then(() => Promise.reject(new Error(`it was not listening after ${LIMIT_MS / 1_000} s`))),
  ])
  for (const path of ['/readyz', '/']) await expectOk(url + path)
  child.kill('SIGTERM')
  const code = await Promise.race([exited, sleep(END_MS)])
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code ?? `nothing within ${END_MS / 1_000} s`}`)
  const isFree = await fetch(url).then(
    () => false,
    () => true,
  )
  if (!isFree) throw new Error(`${url} still answers after the end`)
  return `ready, page served, ended by SIGTERM with 0`
}

const listening = (child) =>
  new Promise((found) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      process.stdout.write(`${line}\n`)
      if (line.startsWith('{') && line.includes('"msg":"listening"')) found(JSON.parse(line).url)
    })
  })

const expectOk = async (url) => {
  for (let left = 100; ; left--) {
    const answer = await fetch(url)
    await answer.arrayBuffer()
    if (answer.status === 200) return
    if (left === 0) throw new Error(`${url} answers ${answer.status}`)
    await sleep(100)
  }
}

const endGroup = (pid) => {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

main().then(
  (done) => process.stdout.write(`${done}\n`, () => process.exit(0)),
  (error) => process.stdout.write(`${error.message}\n`, () => process.exit(1)),
)
