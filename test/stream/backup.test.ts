import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { answersOf, FORGETFUL, liveIn, sendFixes, settled } from '../support/lived-in.ts'
import { ask, call, startService } from '../support/service.ts'

const waymark = async (...args: string[]) => {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (error += text))
  const code = await new Promise<number | null>((done) => child.once('close', done))
  return { code, out, error }
}

/** Has the manifest of a backup say that its history has this schema. */
const withSchema = (backup: string, schema: number): void => {
  const path = join(backup, 'manifest.json')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/"schema": \d+/, `"schema": ${schema}`))
}

test('a backup of a running service is whole: restored, everything answers as it did', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const [data, backup, again] = ['data', 'backup', 'again'].map((name) => join(folder, name))
  let service = await startService(data, FORGETFUL)
  t.teardown(() => service.kill())
  const life = await liveIn(t, service)
  const before = await answersOf(service, life)
  const { day, sent, setting, receiver, email, password, revoked } = life

  // Points come in while it is made: it holds some moment between before and after.
  const sending = sendFixes(service, setting, day.fixes.slice(sent.fixes.length))
  const made = await waymark('backup', backup, '--data', data)
  await sending
  t.match(made, { code: 0, error: '' }, made.error)
  t.ok(JSON.parse(made.out).historyRows > before['/location-histories'].length, made.out)
  await settled(t, service, setting, day)
  const after = await answersOf(service, life)
  const delivered = receiver.deliveries.length
  t.match(await waymark('backup', backup, '--data', data), { code: 1, error: /is not empty/ })
  t.equal(await service.stop(), 0)
  t.match(await waymark('backup', join(folder, 'cold'), '--data', data), { code: 0 }, 'one that does not run')
  t.equal(statSync(join(backup, 'keys.json')).mode & 0o077, 0, 'its keys are private')

  t.match(await waymark('restore', backup, '--verify'), { code: 0 })
  t.match(await waymark('restore', backup, '--data', data), { code: 1, error: /is not empty/ })
  t.match(await waymark('restore', backup, '--data', again), { code: 0, error: '' })
  service = await startService(again, FORGETFUL)
  const restored = await answersOf(service, life)
  for (const question of ['/trackers', '/geofences', '/automations', '/users', '/hubs', '/roles', '/audit-log', 'logo'])
    if (question !== '/trackers') t.same(restored[question], before[question], question)
  const ids = (rows: { _id: string }[]) => new Set(rows.map(({ _id }) => _id))
  const [first, last, found] = [before, after, restored].map((answers) => ids(answers['/location-histories']))
  t.ok([...first].every((id) => found.has(id)) && [...found].every((id) => last.has(id)), 'points of one moment')
  t.ok((await ask(service, 'POST', '/auth/login', { body: { email, password } })).token)
  t.equal((await call(service, 'GET', '/user', { token: revoked })).status, 401)

  // What came after it is sent again, as trackers do that were not acknowledged: then all is as it was in the end.
  await sendFixes(service, setting, day.fixes.slice(sent.fixes.length))
  await settled(t, service, setting, day)
  t.same((await answersOf(service, life))['/location-histories'], after['/location-histories'])
  t.same(receiver.bad, [])
  t.ok(receiver.deliveries.length >= delivered)
  t.equal(await service.stop(), 0)
})

test('a backup that is not whole is not restored, and a restore that was cut off does not start', async (t) => {
  const folder = folderOf(t)
  const [data, backup, target] = ['data', 'backup', 'target'].map((name) => join(folder, name))
  t.match(await waymark('backup', backup, '--data', data), { code: 2, error: /does not exist/ })
  t.match(await waymark('backup'), { code: 2, error: /name one folder/ })
  t.match(await waymark('restore', backup), { code: 1, error: /no backup, or one that was cut off/ })
  const service = await startService(data)
  await service.stop()
  t.match(await waymark('backup', backup, '--data', data), { code: 0 })
  const [elsewhere, other] = ['elsewhere', 'other'].map((name) => join(folder, name))
  mkdirSync(join(elsewhere, 'logos'), { recursive: true })
  writeFileSync(join(elsewhere, 'logos', 'one'), 'a logo')
  t.match(await waymark('backup', other, '--data', data, '--files', `file:${elsewhere}`), { code: 0 })
  t.equal(readFileSync(join(other, 'files', 'logos', 'one'), 'utf8'), 'a logo', 'files that are not in the data folder')
  const onServers = await waymark('backup', join(folder, 'none'), '--data', data, '--log', 'esdb://h:1?tls=false')
  t.match(onServers, { code: 1, error: /log or tables are servers, .* docs\/backup\.md/ })
  const manifest = readFileSync(join(backup, 'manifest.json'), 'utf8')
  const spoil: [RegExp, () => void, () => void][] = [
    [
      /keys\.json of the backup is not as it was written/,
      () => appendFileSync(join(backup, 'keys.json'), ' '),
      () => writeFileSync(join(backup, 'keys.json'), readFileSync(join(data, 'keys.json'))),
    ],
    [
      /has format 9; this version of Waymark reads 1/,
      () => writeFileSync(join(backup, 'manifest.json'), manifest.replace('"format": 1', '"format": 9')),
      () => writeFileSync(join(backup, 'manifest.json'), manifest),
    ],
    [
      /has schema 99, of a later version; this one knows \d+: restore with that version/,
      () => withSchema(backup, 99),
      () => writeFileSync(join(backup, 'manifest.json'), manifest),
    ],
    [
      /has schema 8, of an earlier version; this one knows \d+: restore with the version before this one first/,
      () => withSchema(backup, 8),
      () => writeFileSync(join(backup, 'manifest.json'), manifest),
    ],
    [
      /outside of the backup/,
      () => writeFileSync(join(backup, 'manifest.json'), manifest.replace('log/data.mdb', '../data.mdb')),
      () => writeFileSync(join(backup, 'manifest.json'), manifest),
    ],
    ...[
      [/manifest\.json of the backup is damaged: it must be an object/, 'null'],
      [/manifest\.json of the backup is damaged: \/entries\b/, manifest.replace('"entries"', '"others"')],
      [/damaged: \/entries\/0\/path\b/, manifest.replace('"tables/data.mdb"', '7')],
      [
        /damaged: it has no checksum of \/etc\/passwd/,
        JSON.stringify({
          ...JSON.parse(manifest),
          parts: [{ table: 'points', month: 202611, path: '/etc/passwd', rows: 0 }],
        }),
      ],
    ].map(([error, text]): [RegExp, () => void, () => void] => [
      error as RegExp,
      () => writeFileSync(join(backup, 'manifest.json'), text as string),
      () => writeFileSync(join(backup, 'manifest.json'), manifest),
    ]),
    [/log\/data\.mdb of the backup is missing/, () => rmSync(join(backup, 'log', 'data.mdb')), () => undefined],
  ]
  for (const [error, spoilIt, mend] of spoil) {
    spoilIt()
    t.match(await waymark('restore', backup, '--data', target), { code: 1, error }, String(error))
    t.notOk(existsSync(target), 'nothing is made of it')
    mend()
  }
  mkdirSync(target)
  writeFileSync(join(target, 'restoring'), '')
  t.match(await waymark('start', '--port', '0', '--data', target), { code: 2, error: /a restore that was cut off/ })
})
