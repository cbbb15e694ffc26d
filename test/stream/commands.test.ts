import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'tap'
import { runDemo } from '../../src/cli/demo.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { createLogger } from '../../src/kit/operations/logger.ts'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'

interface Command {
  process: ChildProcess
  output(): string
  ended: Promise<{ code: number | null; errors: string }>
}

const waymark = (...args: string[]): Command => {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  child.stderr.on('data', (text) => {
    errors += text
  })
  const ended = new Promise<{ code: number | null; errors: string }>((done) =>
    child.once('close', (code) => done({ code, errors })),
  )
  return { process: child, output: () => output, ended }
}

/** A port that the service can take again at once: not so one that it was given itself. */
const freePort = (): Promise<number> =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => done(port))
    })
  })

test('what a command cannot do is one sentence; watch outlives a restart of the service', {
  timeout: 120_000,
}, async (t) => {
  const data = folderOf(t)
  const files = t.testdir({
    'broken.csv.gz': 'no gzip',
    'empty-cell.csv': 'trackerId,timestamp,lat,lng\na,2026-01-01T00:00:00Z,,21\n',
    'good.csv': 'trackerId,timestamp,lat,lng\nbus,2026-01-01T00:00:00Z,52,21\nbus,2026-01-01T00:00:05Z,52.1,21\n',
  })
  let service = await startService(data, [], await freePort())
  t.teardown(() => service.kill())
  const { token, email, password } = await signUp(service)
  const at = ['--url', service.url, '--email', email, '--password', password]

  const refused: [string, string[], RegExp][] = [
    [
      'a file that is no gzip',
      ['replay', `${files}/broken.csv.gz`, ...at, '--speed', '0'],
      /broken\.csv\.gz cannot be read: /,
    ],
    ['a folder', ['replay', files, ...at, '--speed', '0'], /cannot be read: /],
    [
      'an empty coordinate',
      ['replay', `${files}/empty-cell.csv`, ...at, '--speed', '0'],
      /:2: timestamp, lat or lng cannot be read/,
    ],
    [
      'a key that is none',
      ['replay', `${files}/good.csv`, '--url', service.url, '--key', 'none', '--speed', '0'],
      /4401/,
    ],
    ['an url that is none', ['replay', `${files}/good.csv`, '--url', 'nowhere', '--key', 'none'], /./],
    ['a box that is none', ['watch', ...at, '--bbox', '1,9,2,3'], /bbox must be west, south, east, north/],
    ['no projection', ['rebuild'], /name a projection/],
  ]
  const ends = await Promise.all(refused.map(([, args]) => waymark(...args).ended))
  refused.forEach(([what, , sentence], i) => {
    t.match(ends[i], { code: 2, errors: sentence }, what)
    t.equal(ends[i].errors.trim().split('\n').length, 1, `${what}: one line`, ends[i])
  })

  t.match(await waymark('replay', `${files}/good.csv`, ...at, '--speed', '0').ended, { code: 0, errors: '' })
  const watch = waymark('watch', ...at)
  t.teardown(() => void watch.process.kill('SIGKILL'))
  await until('the position', () => watch.output().includes('"name":"bus"'))
  const { port } = service
  t.equal(await service.stop(), 0)
  service = await startService(data, [], port)
  const { deviceKey } = (await ask(service, 'POST', '/tracker', { token, body: { name: 'late', kind: 'device' } })).data
  await ask(service, 'POST', '/location-history/bulk', {
    token: deviceKey,
    body: { points: [{ recordedAt: Date.now(), lat: 1, lng: 1 }] },
  })
  await until('the position after the restart', () => watch.output().includes('"name":"late"'))
  watch.process.kill('SIGINT')
  t.match(await watch.ended, { code: 0, errors: '' })
})

test('a demo that cannot be made leaves the service running', { timeout: 120_000 }, async (t) => {
  const data = folderOf(t)
  writeFileSync(`${data}/demo.json`, JSON.stringify({ email: 'demo@waymark.example', password: 'of-another-folder' }))
  const service = await startService(data, ['--demo', '--signup', 'closed'])
  t.teardown(() => service.kill())
  await until('the log to say so', () => service.lines.some((line) => line.includes('the demo cannot run')))
  t.equal((await call(service, 'GET', '//readyz')).status, 200)
  t.equal(await service.stop(), 0)
})

test('a demo whose login is lost begins anew', { timeout: 120_000 }, async (t) => {
  const service = await startService(folderOf(t), [])
  t.teardown(() => service.kill())
  const body = {
    name: 'Demo',
    email: 'demo@waymark.example',
    password: 'Correct-horse-7-battery',
    organizationName: 'Demo',
    hubName: 'Depot',
    hubLat: 52,
    hubLng: 21,
  }
  await ask(service, 'POST', '/auth/signup', { body })
  const abort = new AbortController()
  const login = await new Promise<{ email: string; password: string }>((onLogin, failed) => {
    runDemo({
      url: service.url,
      dataPath: folderOf(t),
      clock: systemClock,
      logger: createLogger('silent'),
      signal: abort.signal,
      onLogin,
    }).catch(failed)
  })
  abort.abort()
  t.match(login.email, /^demo-[0-9a-f]+@waymark\.example$/)
  t.equal((await call(service, 'POST', '/auth/login', { body: login })).status, 200)
})
