import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startEngines, startProcess } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { answersOf, FORGETFUL, liveIn, sendFixes, settled } from '../support/lived-in.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { ask, call, startService, until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

interface Command {
  process: ChildProcess
  output(): string
  ended: Promise<{ code: number | null; out: string; error: string }>
}

const waymark = (...args: string[]): Command => {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (error += text))
  const ended = new Promise<{ code: number | null; out: string; error: string }>((done) =>
    child.once('close', (code) => done({ code, out, error })),
  )
  return { process: child, output: () => error, ended }
}

test('an installation grows: embedded to production engines, cut off in between, and all is as it was', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const data = join(folder, 'data')
  let service = await startService(data, FORGETFUL)
  t.teardown(() => service.kill())
  const life = await liveIn(t, service)
  const before = await answersOf(service, life)
  t.ok(before['/location-histories'].length > 100 && before['/trips'].length > 0 && before['/audit-log'].length > 0)
  const delivered = life.receiver.deliveries.length

  const engines = await startEngines(t, join(folder, 'engines'))
  const [, log, , tables, , history] = engines.flags
  // As the page has it, with this test's places.
  const [, page = ''] = /```sh\nnpx waymark (.*)\n```/.exec(readFileSync('docs/migrate.md', 'utf8')) ?? []
  const places = { './data': data, 'esdb:': log, 'redis:': tables, 'http:': history }
  const migrate = page
    .replaceAll("'", '')
    .split(' ')
    .map((word) => Object.entries(places).find(([beginning]) => word.startsWith(beginning))?.[1] ?? word)
  t.same(migrate, ['migrate', '--from', data, '--to', log, '--to', tables, '--to', history])
  t.match(await waymark(...migrate).ended, { code: 1, error: /in use by process \d+/ }, 'a source that runs is refused')
  t.equal(await service.stop(), 0)

  for (const [moment, seen] of [
    ['in the log', /log: \d+ events/],
    ['in the history', /history: points of/],
  ] as const) {
    const cut = waymark(...migrate)
    // In the very turn in which it says so: it is over soon.
    cut.process.stderr?.on('data', () => seen.test(cut.output()) && cut.process.kill('SIGKILL'))
    const { code, error } = await cut.ended
    t.equal(code, null, `cut off ${moment}: ${error}`)
    const early = waymark('start', '--port', '0', '--data', data, ...engines.flags)
    t.match(await early.ended, { code: 2, error: /unfinished copy .* run waymark migrate again/ })
  }
  const whole = await waymark(...migrate).ended
  t.match(whole, { code: 0 }, whole.error)
  const report = JSON.parse(whole.out)
  t.ok(report.events > 50 && report.historyRows > before['/location-histories'].length, whole.out)
  t.match(await waymark(...migrate).ended, { code: 1, error: /copied there before, and completely/ })

  service = await startService(data, [...engines.flags, ...FORGETFUL])
  for (const [question, answer] of Object.entries(await answersOf(service, life)))
    t.same(answer, before[question], question)
  const { email, password, revoked } = life
  t.ok((await ask(service, 'POST', '/auth/login', { body: { email, password } })).token, 'the password is what it was')
  t.equal((await call(service, 'GET', '/user', { token: revoked })).status, 401, 'a session that was ended stays so')

  const { day, sent, setting, receiver } = life
  await sendFixes(service, setting, day.fixes.slice(sent.fixes.length))
  await settled(t, service, setting, day)
  t.same(receiver.bad, [], 'the secrets of webhooks are what they were')
  const ids = receiver.deliveries.map(({ id }) => id)
  t.ok(ids.length > delivered, 'new webhooks came')
  t.equal(new Set(ids).size, ids.length, 'none came twice')

  const grown = await answersOf(service, life)
  t.equal(await service.stop(), 0)
  const other = await startProcess('dist/test/support/clickhouse/main.js', join(folder, 'other'))
  const proxy = await TcpProxy.open(other.port)
  t.teardown(async () => {
    await proxy.close()
    other.child.kill('SIGKILL')
  })
  const moved = `http://127.0.0.1:${proxy.port}`
  const alone = ['migrate', '--from', data, '--from', log, '--from', history, '--to', moved]
  proxy.slow(200)
  const cut = waymark(...alone)
  await until('it to be in the history', () => /history: points of/.test(cut.output()) || cut.process.exitCode !== null)
  cut.process.kill('SIGKILL')
  t.match(await cut.ended, { code: null }, 'the history alone: cut off')
  proxy.slow(0)
  const elsewhere = [...engines.flags, '--history', moved]
  const half = waymark('start', '--port', '0', '--data', data, ...elsewhere)
  t.match(await half.ended, { code: 2, error: /--history is an unfinished copy .* run waymark migrate again/ })
  const rest = await waymark(...alone).ended
  t.match(rest, { code: 0 }, rest.error)
  t.match(JSON.parse(rest.out), { events: 0, files: 0 })
  t.match(await waymark(...alone).ended, { code: 1, error: /history was copied there before, and completely/ })
  service = await startService(data, [...elsewhere, ...FORGETFUL])
  for (const [question, answer] of Object.entries(await answersOf(service, life)))
    t.same(answer, grown[question], `history elsewhere: ${question}`)
  t.equal(await service.stop(), 0)
})

test('migrate says what it cannot do', async (t) => {
  const data = folderOf(t)
  const refused: [string[], number, RegExp][] = [
    [['--to', 'esdb://h'], 2, /--from must name the data folder/],
    [['--from', `${data}/none`, '--to', 'esdb://h'], 2, /does not exist/],
    [['--from', data], 2, /--to must name a log, a history or a place for files/],
    [['--from', data, '--to', 'redis://h'], 2, /tables are not copied, they are built from the log/],
    [['--from', data, '--to', 'kafka://h'], 2, /--to kafka: names no engine/],
    [['--from', data, '--to', 'esdb://u:secret@h:x'], 2, /--log esdb:\/\/\*\*\*@h:x cannot be read/],
    [['--from', data, '--to', 'esdb://h', '--to', 'esdb://i'], 2, /--to names two places for the log/],
    [['--from', data, '--to', data], 2, /--to names the folder of --from/],
    [['--from', data, '--to', `${data}/new`], 2, /use waymark backup and waymark restore/],
    [['--from', data, '--from', 'esdb://h', '--to', 'esdb://h'], 2, /--from and --to name the same log/],
    [['--from', data, '--to', 'esdb://h?tls=false'], 1, /the source has no log/],
  ]
  for (const [args, code, error] of refused) {
    const ended = await waymark('migrate', ...args).ended
    t.match(ended, { code, error }, `${args.join(' ')}: ${ended.error}`)
    t.notMatch(ended.error, /secret|at .*\.js/)
  }
})
