import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'tap'
import { call, signUp, startService, until, type Service } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

interface Ended {
  code: number | null
  errors: string
}

/** Runs a start that is expected to end by itself. */
const run = (flags: readonly string[]): Promise<Ended> =>
  new Promise((done) => {
    const child = spawn(process.execPath, ['dist/src/main.js', 'start', '--port', '0', ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    child.stderr.on('data', (text) => {
      errors += text
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), 240_000)
    child.once('close', (code) => {
      clearTimeout(timer)
      done({ code, errors })
    })
  })

const METRICS = [
  'waymark_points_total{result="accepted"}',
  'waymark_append_seconds',
  'waymark_consumer_lag_events{',
  'waymark_consumer_lag_seconds{',
  'waymark_live_clients',
  'waymark_live_conflated_total',
  'waymark_transitions_total',
  'waymark_deliveries_total',
  'waymark_event_loop_delay_seconds',
  'waymark_engine_up{engine="log"} 1',
]

test('what cannot be started ends with 2 and one sentence', { timeout: 900_000 }, async (t) => {
  const data = `${folderOf(t)}/data`
  const service = await startService(data)
  t.teardown(() => service.kill())
  const taken = createServer()
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done))
  t.teardown(() => void taken.close())
  const { port } = taken.address() as { port: number }
  const other = (name: string): string => `${data}-${name}`

  const refused: [string, string[], RegExp][] = [
    ['a flag that is not there', ['--nonsense', '1'], /nonsense/],
    ['a value that is none', ['--token-ttl', 'soon', '--data', other('a')], /--token-ttl must be a duration/],
    ['a port that is taken', ['--port', String(port), '--data', other('b')], new RegExp(`${port}`)],
    ['a folder in use', ['--data', data], /in use by process \d+/],
    [
      'a folder that cannot be made',
      ['--data', '/proc/nope/data'],
      /--data \/proc\/nope\/data cannot be made a folder/,
    ],
    ['a file in place of the folder', ['--data', 'package.json'], /--data \S*package.json cannot be made a folder/],
    [
      'an engine that is not there',
      ['--log', 'esdb://127.0.0.1:9?tls=false', '--data', other('c')],
      /--log esdb:\/\/127\.0\.0\.1:9\?tls=false does not answer/,
    ],
    [
      'a keyring that cannot be made',
      ['--keys', '/proc/nope/keys.json', '--data', other('g')],
      /keyring \/proc\/nope\/keys\.json cannot be made: ENOENT/,
    ],
    [
      'files that cannot be kept',
      ['--files', 'file:/proc/nope/files', '--data', other('h')],
      /--files file:\/proc\/nope\/files cannot be made a folder/,
    ],
    [
      'mails that cannot be kept',
      ['--smtp', 'file:/proc/nope/mail', '--data', other('i')],
      /--smtp file:\/proc\/nope\/mail cannot be made a folder/,
    ],
    ['a keyring that is none', ['--keys', 'package.json', '--data', other('d')], /package\.json/],
    ['a certificate without its key', ['--tls-cert', 'package.json', '--data', other('e')], /go together/],
  ]
  const ends = await Promise.all(refused.map(([, flags]) => run(flags)))
  refused.forEach(([what, , sentence], i) => {
    const { code, errors } = ends[i]
    t.equal(code, 2, `${what}: exit code`)
    t.match(errors, sentence, `${what}: says what is wrong`)
    t.equal(errors.trim().split('\n').length, 1, `${what}: one line`, { errors })
  })

  t.equal(await service.stop(), 0)
  const keys = readFileSync(`${data}/keys.json`)
  const stranger = await startService(other('f'))
  t.equal(await stranger.stop(), 0, 'SIGTERM ends it with 0')
  t.match(
    await run(['--data', data, '--partitions', '8']),
    { code: 2, errors: /^[^\n]*partitions[^\n]*\n$/ },
    'another number of partitions',
  )
  writeFileSync(`${data}/keys.json`, readFileSync(`${other('f')}/keys.json`))
  t.match(await run(['--data', data]), { code: 2, errors: /^[^\n]*keyring[^\n]*\n$/ }, 'a keyring of another log')
  writeFileSync(`${data}/keys.json`, keys)
})

test('tokens and the login of the demo stay good; the metrics are there; a second SIGTERM ends at once', {
  timeout: 900_000,
}, async (t) => {
  const data = folderOf(t)
  const demoOf = async (service: Service): Promise<{ email: string; password: string }> => {
    await until('the demo login', () => service.lines.some((line) => line.includes('"msg":"demo"')))
    const { email, password, url } = JSON.parse(service.lines.find((line) => line.includes('"msg":"demo"')) as string)
    t.equal(url, service.url)
    return { email, password }
  }
  const first = await startService(data, ['--demo'])
  const login = await demoOf(first)
  const { token } = await signUp(first)
  let metrics = ''
  // An engine that takes longer than a second is said not to answer.
  await until('the log to answer', async () => {
    metrics = (await call(first, 'GET', '//metrics')).text
    return metrics.includes('waymark_engine_up{engine="log"} 1')
  })
  for (const name of METRICS) t.ok(metrics.includes(name), name)
  t.equal(await first.stop(), 0)

  const second = await startService(data, ['--demo'])
  t.teardown(() => second.kill())
  t.same(await demoOf(second), login, 'the same login')
  t.equal((await call(second, 'POST', '/auth/login', { body: login })).status, 200, 'which is good')
  t.equal((await call(second, 'GET', '/user', { token })).status, 200, 'the token is good still')
  t.match((await call(second, 'GET', '//')).text, login.email, 'the page fills it in')

  // Closed, so that its last lines are here.
  const exited = new Promise<number | null>((done) => second.process.once('close', done))
  const socket = await fetch(`${second.url}/healthz`)
  t.equal(socket.status, 200)
  second.process.kill('SIGTERM')
  await until('it to be stopping', () => second.lines.some((line) => line.includes('"stopping"')))
  second.process.kill('SIGTERM')
  const code = await exited
  // Once all is closed the process has no ears left: the system ends it.
  const isClosed = second.lines.some((line) => line.includes('"stopped"'))
  t.ok(code === 0 || code === 1 || (isClosed && second.process.signalCode === 'SIGTERM'), `it ended with ${code}`)
})
