import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { test } from 'tap'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { shownLogin } from '../../src/cli/banner.ts'
import { runDemo } from '../../src/cli/demo.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { createLogger } from '../../src/kit/operations/logger.ts'
import { makeCertificate } from '../support/certificate.ts'
import { folderOf } from '../support/folder-of.ts'
import { freePort } from '../support/free-port.ts'
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

test('what a command cannot do is one sentence; watch outlives a restart of the service', {
  timeout: 900_000,
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
    ['a folder that is not there', ['rebuild', 'directory', '--data', `${files}/none`], /\/none does not exist/],
    ['help for no command', ['help', 'nothing'], /no command "nothing"/],
  ]
  const ends = await Promise.all(refused.map(([, args]) => waymark(...args).ended))
  refused.forEach(([what, , sentence], i) => {
    t.match(ends[i], { code: 2, errors: sentence }, what)
    t.equal(ends[i].errors.trim().split('\n').length, 1, `${what}: one line`, ends[i])
  })

  t.notOk(existsSync(`${files}/none`), 'and is not made')

  t.match(await waymark('replay', `${files}/good.csv`, ...at, '--speed', '0').ended, { code: 0, errors: '' })
  const watch = waymark('watch', ...at)
  t.teardown(() => void watch.process.kill('SIGKILL'))
  await until('the position', () => watch.output().includes('"name":"bus"'))
  const { port } = service
  t.equal(await service.stop(), 0)
  // As a service answers that has opened its port and cannot serve yet.
  let refusals = 0
  const starting = createServer((_, response) => {
    refusals++
    response.writeHead(503, { connection: 'close' }).end('{"status":false,"code":"engine_down","message":"Try later."}')
  }).listen(port, '127.0.0.1')
  await until('it to be asked', () => refusals > 0 || watch.process.exitCode !== null)
  await new Promise((done) => starting.close(done))
  service = await startService(data, [], port)
  const { deviceKey } = (await ask(service, 'POST', '/tracker', { token, body: { name: 'late', kind: 'device' } })).data
  await ask(service, 'POST', '/location-history/bulk', {
    token: deviceKey,
    body: { points: [{ recordedAt: Date.now(), lat: 1, lng: 1 }] },
  })
  const goesOn = () => watch.output().includes('"name":"late"') || watch.process.exitCode !== null
  await until('the position after the restart', goesOn)
  watch.process.kill('SIGINT')
  t.match(await watch.ended, { code: 0, errors: '' })
})

test('what no command foresaw is one line too, and where it comes from for whoever asks', {
  timeout: 900_000,
}, async (t) => {
  for (const command of [['doctor'], ['rebuild', 'fleet']]) {
    const { code, errors } = await waymark(...command, '--data', 'package.json').ended
    t.equal(code, 1)
    t.match(errors, /^[^\n]*ENOTDIR[^\n]*\n$/, command[0])
  }
  process.env.NODE_DEBUG = 'waymark'
  t.teardown(() => void delete process.env.NODE_DEBUG)
  t.match(
    (await waymark('doctor', '--data', 'package.json').ended).errors,
    /WAYMARK \d+: [\s\S]* {4}at [\s\S]*ENOTDIR[^\n]*\n$/,
  )
})

test('a row that the service refuses is named by its line, and is not counted as acknowledged', {
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { email, password } = await signUp(service)
  const at = ['--url', service.url, '--email', email, '--password', password, '--speed', '0']
  const folder = `${folderOf(t)}/traces`
  mkdirSync(folder)
  const row = (second: number, lat: number): string =>
    `bus,2026-01-01T00:00:${String(second).padStart(2, '0')}Z,${lat},21\n`
  const file = (name: string, rows: readonly string[]): string => {
    writeFileSync(`${folder}/${name}`, `trackerId,timestamp,lat,lng\n${rows.join('')}`)
    return `${folder}/${name}`
  }

  const one = waymark(
    'replay',
    file('one-bad.csv', [row(0, 52), row(5, 52.1), '\n', row(10, 95), row(15, 52.2)]),
    ...at,
  )
  const { code, errors } = await one.ended
  t.equal(code, 1)
  t.match(errors, /^\S*one-bad\.csv:5: \/?lat .*90.* \(invalid\)\n$/, 'the line, and what is wrong with it')
  t.equal(one.output(), '3 points acknowledged, 1 rejected\n')

  // Over several frames, and more than are named one by one.
  const rows = Array.from({ length: 1_200 }, (_, i) => row(i % 60, i % 40 === 39 ? 95 : 52))
  const many = waymark('replay', file('many.csv', rows), ...at)
  const lines = (await many.ended).errors.trim().split('\n')
  t.same(
    lines.slice(0, 20).map((line) => Number(/many\.csv:(\d+):/.exec(line)?.[1])),
    Array.from({ length: 20 }, (_, i) => 41 + i * 40),
  )
  t.same(lines.slice(20), ['and 10 more'])
  t.equal(many.output(), '1170 points acknowledged, 30 rejected\n')
})

test('a certificate of one s own: the demo runs; watch says what is wrong, and trusts it with --ca', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const tls = makeCertificate(folder)
  if (tls === undefined) return void t.pass('https', { skip: 'there is no openssl to make a certificate with' })
  const flags = ['--demo', '--tls-cert', tls.certFile, '--tls-key', tls.keyFile]
  const before = getGlobalDispatcher()
  setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(tls.certFile) } }))
  t.teardown(() => setGlobalDispatcher(before))
  const service = await startService(`${folder}/data`, flags)
  t.teardown(() => service.kill())
  const said = (text: string): string | undefined => service.lines.find((line) => line.includes(text))
  await until('the demo', () => said('"msg":"demo"') !== undefined || said('the demo cannot run') !== undefined)
  const { email, password } = JSON.parse(said('"msg":"demo"') as string)
  const at = ['--url', service.url, '--email', email, '--password', password]
  t.match(
    await waymark('watch', ...at).ended,
    { code: 2, errors: /^https:\S+ has a certificate that is not trusted \(self-signed certificate\); .*--ca\n$/ },
    'the reason and what helps',
  )
  const watch = waymark('watch', ...at, '--ca', tls.certFile)
  t.teardown(() => void watch.process.kill('SIGKILL'))
  await until('a position of the demo', () => watch.output().includes('"position"'))
  watch.process.kill('SIGINT')
  t.match(await watch.ended, { code: 0, errors: '' })
})

test('doctor says what is wrong with a folder', { timeout: 900_000 }, async (t) => {
  const data = folderOf(t)
  const missing = waymark('doctor', '--data', `${data}/nowhere`)
  t.match(await missing.ended, { code: 1, errors: '' }, 'a folder that does not exist')
  t.match(
    missing.output(),
    /^BAD {2}data folder \S+nowhere does not exist\n {5}-> .*--data.*\nok {3}keyring \S+ is not there yet/,
  )
  const service = await startService(data)
  t.teardown(() => service.kill())
  // An engine that takes longer than a second is said not to answer.
  let running = waymark('doctor', '--data', data)
  await until('all engines to answer', async () => {
    if ((await running.ended).code === 0) return true
    running = waymark('doctor', '--data', data)
    return false
  })
  t.match(await running.ended, { code: 0, errors: '' }, 'a service that runs')
  t.match(running.output(), /ok {3}engine log answers/)
  t.equal(await service.stop(), 0)
  const stopped = waymark('doctor', '--data', data)
  t.match(await stopped.ended, { code: 0, errors: '' }, 'one that does not')
  t.match(stopped.output(), /no service runs/)
  chmodSync(`${data}/keys.json`, 0o644)
  const open = waymark('doctor', '--data', data)
  t.match(await open.ended, { code: 1, errors: '' }, 'a keyring that others may read')
  t.match(open.output(), /BAD {2}keyring \S+ is readable by others: chmod 600/)
})

test('the demo shows its login to this machine alone, unless a flag says otherwise', {
  timeout: 900_000,
}, async (t) => {
  const login = { email: 'demo@waymark.example', password: 'secret', path: '/data/demo.json' }
  for (const host of ['127.0.0.1', '::1', 'localhost'])
    t.match(shownLogin({ host, demoLoginPublic: false }, login), { fields: { password: 'secret' }, signIn: /secret$/ })
  t.notMatch(JSON.stringify(shownLogin({ host: '0.0.0.0', demoLoginPublic: false }, login)), /secret/)
  t.match(shownLogin({ host: '0.0.0.0', demoLoginPublic: false }, login), { fields: { passwordFile: login.path } })
  t.match(shownLogin({ host: '0.0.0.0', demoLoginPublic: true }, login), { fields: { password: 'secret' } })

  for (const [flags, isSeen] of [
    [[], false],
    [['--demo-login-public'], true],
  ] as const) {
    const service = await startService(`${folderOf(t)}/${isSeen}`, ['--demo', ...flags])
    t.teardown(() => service.kill())
    await until('the demo', () => service.lines.some((line) => line.includes('"msg":"demo"')))
    const demo = JSON.parse(service.lines.find((line) => line.includes('"msg":"demo"')) as string)
    t.match((await call(service, 'GET', '//')).text, demo.password, 'this machine')
    const proxied: { [name: string]: string }[] = [
      { 'x-forwarded-for': '203.0.113.7' },
      { forwarded: 'for=203.0.113.7' },
      { via: '1.1 proxy' },
      { host: 'evil.example' },
    ]
    for (const headers of proxied) {
      const page = (await call(service, 'GET', '//', { headers })).text
      t.equal(page.includes(demo.password), isSeen, `${Object.keys(headers)} ${flags}`)
    }
    t.equal(await service.stop(), 0)
  }
})

test('a demo that cannot be made leaves the service running', { timeout: 900_000 }, async (t) => {
  const data = folderOf(t)
  writeFileSync(`${data}/demo.json`, JSON.stringify({ email: 'demo@waymark.example', password: 'of-another-folder' }))
  const service = await startService(data, ['--demo', '--signup', 'closed'])
  t.teardown(() => service.kill())
  await until('the log to say so', () => service.lines.some((line) => line.includes('the demo cannot run')))
  await until('to be ready', async () => (await call(service, 'GET', '//readyz')).status === 200)
  t.equal(await service.stop(), 0)
})

test('a demo whose login is lost begins anew', { timeout: 900_000 }, async (t) => {
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
      onLogin: ({ email, password }) => onLogin({ email, password }),
    }).catch(failed)
  })
  abort.abort()
  t.match(login.email, /^demo-[0-9a-f]+@waymark\.example$/)
  t.equal((await call(service, 'POST', '/auth/login', { body: login })).status, 200)
})
