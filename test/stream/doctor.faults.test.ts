import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { engineFindings } from '../../src/cli/doctor/engines.ts'
import { readConfig } from '../../src/config.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { startEngines } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { freePort } from '../support/free-port.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { samplesMade, signUp, startService, until } from '../support/service.ts'

interface Finding {
  area: string
  ok: boolean | null
  what: string
  advice?: string
}

const doctor = async (...args: string[]) => {
  const child = spawn(process.execPath, ['dist/src/main.js', 'doctor', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (error += text))
  const code = await new Promise<number | null>((done) => child.once('close', done))
  const report = (out === '' ? { findings: [] } : JSON.parse(out)) as { ok: boolean; findings: Finding[] }
  const bad = report.findings.filter(({ ok }) => ok === false)
  const of = (area: string): string =>
    report.findings
      .filter((one) => one.area === area)
      .map(({ what }) => what)
      .join('\n')
  return { code, error, out, report, bad, of }
}

/** Asks until the service says so: an engine that took longer than a second is said not to answer. */
const seen = async (expected: RegExp, ...args: string[]): ReturnType<typeof doctor> => {
  let said = await doctor(...args)
  await until(`the doctor to say ${expected}`, async () => {
    const isSeen = expected.test(said.of('service'))
    if (!isSeen) said = await doctor(...args)
    return isSeen
  })
  return said
}

test('the embedded engines: written to and read back, or in use by the service that runs', {
  timeout: 900_000,
}, async (t) => {
  const data = join(folderOf(t), 'data')
  const service = await startService(data)
  t.teardown(() => service.kill())
  await samplesMade(service, (await signUp(service)).token)
  const upload = join(data, 'files', '.incoming', 'on-its-way')
  writeFileSync(upload, 'half a file')
  const running = await seen(/(engine \w+ answers\n){3}[\s\S]*directory is 0 events/, '--data', data)
  t.match(running, { code: 0, error: '', report: { ok: true } }, running.out)
  t.match(running.of('log'), /^log \(lmdb: \S+log, \d+ MiB\) is open in the running process/)
  t.match(running.of('service'), /engine log answers[\s\S]*directory is 0 events/)
  t.match(running.of('files'), /answers in .* keeps what is written/)
  t.ok(existsSync(upload), 'it throws no upload away')
  t.match(running.of('mail'), /mail \(file:\S+mail\) answers/)
  // A service that hangs: nothing is answered, and the doctor is done all the same.
  service.process.kill('SIGSTOP')
  const hung = await doctor('--data', data, '--deadline', '1s')
  service.process.kill('SIGCONT')
  t.match(hung, { code: 1, report: { ok: false } })
  t.match(hung.of('service'), /does not report its state: no answer within 1 s/)
  t.equal(await service.stop(), 0)

  const before = await heads(data)
  const stopped = await doctor('--data', data)
  t.match(stopped, { code: 0, report: { ok: true } }, stopped.out)
  for (const area of ['log', 'tables', 'history'])
    t.match(stopped.of(area), /answers in [\d.]+ ms, keeps what is written/, area)
  t.match(stopped.of('history'), /version \d+\.\d+[\s\S]*clock [\s\S]*schema is (\d+) of \1/)
  t.same(await heads(data), before, 'it leaves nothing')

  const config = readConfig(['--data', data], {})
  const clock = { ...systemClock, now: () => Date.now() + 3_600_000 }
  const begun = performance.now()
  const { findings: ahead } = await engineFindings({ config, clock, deadlineMs: 60_000, isInUse: false })
  const tookSeconds = (performance.now() - begun) / 1000
  const skewed = ahead.filter(({ ok }) => ok === false)
  t.match(skewed, [{ area: 'history', what: /clock .*differ by 3\d{3}\.\d s/, advice: /NTP/ }], 'a clock that is wrong')
  const seconds = Number(/differ by ([\d.]+) s/.exec(skewed[0].what)?.[1])
  t.ok(
    seconds <= 3_600 && seconds >= 3_600 - tookSeconds - 0.1,
    `${seconds} s, as far as it can be told in ${tookSeconds}`,
  )
  t.equal(skewed.length, 1)
})

/** Where a reader of the log would find anything of the doctor. */
const heads = async (data: string): Promise<number[]> => {
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  const found = await Promise.all([log.head('waymark-doctor'), log.head('log-origin')])
  await log.close()
  return found
}

test('production engines: settings that lose data are named, and an engine that hangs or is away does not hold the doctor up', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const { flags, servers } = await startEngines(t, folder)
  const base = ['--data', folder, ...flags]
  const well = await doctor(...base)
  t.same(well.bad, [], `nothing was started here yet, and all is well: ${well.out}`)
  t.match(well.of('keys'), /is not there yet: the first start creates it/)
  const nowhere = await doctor(...base, '--data', join(folder, 'nowhere'))
  t.match(nowhere.bad, [{ area: 'machine', what: /data folder \S+nowhere does not exist/ }])
  t.match(nowhere.of('tables'), /keeps what is written/, 'servers are tried without it')
  t.match(well.of('log'), /version 23\.10[\s\S]*the right to start scavenges is granted/)
  t.match(well.of('history'), /fsync_after_insert is not set yet[\s\S]*async_insert of the service's inserts is 0/)
  t.match(
    well.of('tables'),
    /version 7[\s\S]*appendonly is yes[\s\S]*appendfsync is always[\s\S]*maxmemory-policy is noeviction[\s\S]*WAIT is not needed: there are no replicas/,
  )

  const service = await startService(join(folder, 'service'), flags)
  t.teardown(() => service.kill())
  servers.tables.proxy.silence()
  const alone = /engine log answers\nengine tables does not answer\nengine history answers/
  const down = await seen(alone, '--data', join(folder, 'service'), ...flags, '--deadline', '8s')
  servers.tables.proxy.heal()
  t.match(down.of('service'), alone, down.out)
  await service.kill()

  const forgetful = await openRedisServer(folder, ['--requirepass', 'hunter2', '--appendfsync', 'no'])
  t.teardown(() => forgetful.kill())
  const url = forgetful.url.replace('//', '//default:hunter2@')
  const away = `http://ada:hunter3@127.0.0.1:${await freePort()}/db`
  servers.log.proxy.silence()
  const ill = await doctor(...base, '--tables', url, '--history', away, '--deadline', '10s')
  servers.log.proxy.heal()
  t.equal(ill.code, 1)
  t.notMatch(ill.out + ill.error, /hunter/, 'no password')
  t.match(ill.bad, [
    { area: 'keys' },
    { area: 'log', what: /cannot be used: no answer within 10 s/, advice: /docs\/runbooks\.md/ },
    { area: 'tables', what: /appendonly is no/, advice: /CONFIG SET appendonly yes/ },
    { area: 'tables', what: /appendfsync is no/ },
    { area: 'history', what: /\*\*\*@127.* cannot be used: .*ECONNREFUSED/, advice: /docs\/runbooks\.md/ },
  ])
  t.match(await doctor('--data', folder, '--log', 'kafka://h'), { code: 2, error: /names no engine/ })
})
