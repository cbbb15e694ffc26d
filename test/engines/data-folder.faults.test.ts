import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { lockDataFolder, ownerOfFolder } from '../../src/engines/data-folder.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'

const hasNamespaces = process.platform === 'linux' && spawnSync('unshare', ['-p', '-f', 'true']).status === 0

const MODULE = new URL('../../src/engines/data-folder.js', import.meta.url).href

/** A process that takes the folder and keeps it until it is killed. */
const startOwner = async (folder: string, program = process.execPath, before: string[] = []) => {
  const script = `const { lockDataFolder } = await import(${JSON.stringify(MODULE)}); lockDataFolder(${JSON.stringify(folder)}); console.log('taken'); setInterval(() => {}, 1000)`
  const child = spawn(program, [...before, '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return child
}

test('a folder belongs to one owner at a time', async (t) => {
  const path = join(folderOf(t), 'new', 'folder')
  const owner = lockDataFolder(path)
  t.throws(() => lockDataFolder(path), new RegExp(`${path} is in use by process ${process.pid};`))
  owner.release()
  owner.release()
  const next = lockDataFolder(path)
  owner.release()
  t.throws(() => lockDataFolder(path), /in use/, 'a former owner cannot release it')
  next.release()
  t.same(readdirSync(path), [])
})

test('another process is refused and named while it lives, and does not block when it was killed', async (t) => {
  const path = folderOf(t)
  const child = await startOwner(path)
  t.throws(() => lockDataFolder(path), new RegExp(`in use by process ${child.pid};`))
  child.kill('SIGKILL')
  await once(child, 'exit')
  lockDataFolder(path).release()
})

test('a process of another container is refused while the owner lives, and not after it', {
  skip: hasNamespaces ? false : 'needs root on Linux, for process numbers of its own',
}, async (t) => {
  const path = folderOf(t)
  const numbers = ['-p', '-f', '--mount-proc', '--kill-child']
  const child = await startOwner(path, 'unshare', [...numbers, process.execPath])
  t.equal(JSON.parse(readFileSync(join(path, 'owner.lock'), 'utf8')).pid, 1, 'its own number 1')
  t.throws(() => lockDataFolder(path), /in use by process 1 of another container;/)
  t.equal(ownerOfFolder(path), 1)
  child.kill('SIGKILL')
  await once(child, 'exit')
  await until('its end', () => ownerOfFolder(path) === undefined)
  lockDataFolder(path).release()
  t.same(readdirSync(path), [])
})

test('a process that was given the number of a dead owner is not taken for it', async (t) => {
  const path = folderOf(t)
  writeFileSync(
    join(path, 'owner.lock'),
    JSON.stringify({ pid: process.pid, startedAt: '1', bootId: 'another', token: 'x' }),
  )
  lockDataFolder(path).release()
  writeFileSync(join(path, 'owner.lock'), '')
  lockDataFolder(path).release()
  t.same(readdirSync(path), [])
})

test('of processes that race for a folder one gets it', { timeout: 900_000 }, async (t) => {
  const path = folderOf(t)
  writeFileSync(join(path, 'owner.lock'), JSON.stringify({ pid: 1, startedAt: 'never', bootId: 'another', token: 'x' }))
  const script = `const { lockDataFolder } = await import(${JSON.stringify(MODULE)});
    process.stdin.once('data', () => { try { lockDataFolder(${JSON.stringify(path)}); console.log('taken') } catch (error) { console.log(error.message) } process.stdin.resume() })
    console.log('ready')`
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  await Promise.all(children.map((child) => once(child.stdout, 'data')))
  for (const child of children) child.stdin.write('go\n')
  const answers = await Promise.all(children.map(async (child) => String((await once(child.stdout, 'data'))[0]).trim()))
  t.equal(answers.filter((answer) => answer === 'taken').length, 1, answers.join(' | '))
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(children.map((child) => once(child, 'exit')))
})
