import { spawn } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { startProcess } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { everyEntry, openBelow } from '../support/open-below.ts'
import { samplesMade, signUp, startService, until } from '../support/service.ts'

// What a shell hands on whose user is careless.
process.umask(0)

const waymark = async (...args: string[]) => {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (error += text))
  const code = await new Promise<number | null>((done) => child.once('close', done))
  return { code, out, error }
}

const openUp = (path: string): void => {
  for (const entry of everyEntry(path)) {
    const stat = lstatSync(entry)
    if (stat.isDirectory()) chmodSync(entry, 0o755)
    else if (stat.isFile()) chmodSync(entry, 0o644)
  }
}

test('a data folder, its copies and what a start finds are for their owner alone', { timeout: 900_000 }, async (t) => {
  // The path of the control socket would be too long in the test's own folder.
  const folder = mkdtempSync(join(tmpdir(), 'waymark-modes-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [data, backup, again, moved] = ['data', 'backup', 'again', 'moved'].map((name) => join(folder, name))
  let service = await startService(data)
  t.teardown(() => service.kill())
  await samplesMade(service, (await signUp(service)).token)
  await until('a mail', () => readdirSync(join(data, 'mail')).some((name) => name.endsWith('.eml')))
  for (const name of [
    'log/data.mdb',
    'tables/lock.mdb',
    'history',
    'history-scratch',
    'files',
    'control.sock',
    'node-id',
  ])
    t.ok(existsSync(join(data, name)), name)
  t.same(openBelow(data), [], 'from the first moment on')
  t.equal(await service.stop(), 0)

  openUp(data)
  const said = await waymark('doctor', '--data', data)
  t.match(said, {
    code: 1,
    out: /BAD .*data folder \S+ is open to other users of this machine \(\S+data\)\n +-> chmod -R go-rwx/,
  })
  mkdirSync(backup, { mode: 0o755 })
  t.match(await waymark('backup', backup, '--data', data), { code: 0, error: '' })
  t.same(openBelow(backup), [], 'a backup')
  const { child, port } = await startProcess('dist/test/support/clickhouse/main.js', join(folder, 'server'))
  t.teardown(() => child.kill('SIGKILL'))
  t.match(await waymark('migrate', '--from', data, '--to', moved, '--to', `http://127.0.0.1:${port}`), { code: 0 })
  t.same(openBelow(moved), [], 'what migrate copies')

  openUp(data)
  service = await startService(data)
  t.same(openBelow(data), [], 'what an earlier version left open')
  t.equal(await service.stop(), 0)
  t.match((await waymark('doctor', '--data', data)).out, /ok .*is open to its owner alone/)

  openUp(backup)
  t.match(await waymark('restore', backup, '--data', again), { code: 0, error: '' })
  t.same(openBelow(again), [], 'what restore makes')
})

test('only what is ours is closed in a folder that has other things too', { timeout: 600_000 }, async (t) => {
  const folder = folderOf(t)
  const others = join(folder, 'other', 'bin')
  mkdirSync(others, { recursive: true, mode: 0o755 })
  chmodSync(folder, 0o1777)
  const service = await startService(folder)
  t.teardown(() => service.kill())
  t.equal(await service.stop(), 0)
  t.equal(lstatSync(folder).mode & 0o7777, 0o1777, 'a folder like /tmp stays as it is')
  t.equal(lstatSync(others).mode & 0o777, 0o755)
  for (const name of ['log', 'tables', 'history', 'files']) t.same(openBelow(join(folder, name)), [], name)
})
