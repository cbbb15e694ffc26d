import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { type ChdbHistoryStore, openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { historyStoreContract } from './history-store.ts'
import { folderOf } from '../support/folder-of.ts'

test('chDB keeps the promises of a history store', async (t) => {
  const folder = folderOf(t)
  await historyStoreContract(t, {
    open: (options) =>
      openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch'), ...options }),
    crash: (store) => (store as ChdbHistoryStore).crash(),
  })
})

test('in a process that gives way to others it opens too, and none of its threads is lifted', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const child = spawn('nice', ['-n', '15', process.execPath, 'dist/test/contracts/chdb-child.js', folderOf(t)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [first] = await once(createInterface({ input: child.stdout }), 'line')
  t.equal(first, '0', 'a table was made and a row inserted')
  const lifted = readdirSync(`/proc/${child.pid}/task`).filter((thread) => getPriority(Number(thread)) < 15)
  const names = lifted.map((thread) => readFileSync(`/proc/${child.pid}/task/${thread}/comm`, 'utf8').trim())
  t.same(
    names.filter((name) => name !== 'MemoryWorker'),
    [],
    'but the one that the engine lifts by itself',
  )
  child.kill('SIGKILL')
  await once(child, 'exit')
})

test('every acknowledged insert is there after SIGKILL', async (t) => {
  const folder = folderOf(t)
  const child = spawn(process.execPath, ['dist/test/contracts/chdb-child.js', folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const acknowledged: number[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged.push(Number(line))
    if (acknowledged.length === 12) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const there = new Set((await store.rows<{ id: number }>('SELECT id FROM kept')).map(({ id }) => id))
  t.ok(acknowledged.length >= 12)
  t.same(
    acknowledged.filter((id) => !there.has(id)),
    [],
  )
  await store.close()
})

test('a process that exits while queries are open ends by itself', async (t) => {
  // Before the first answer of the new queries, and after it.
  for (const pauseMs of [0, 20, 60, 150, 400]) {
    const child = spawn(
      process.execPath,
      ['dist/test/contracts/chdb-exit-child.js', join(folderOf(t), String(pauseMs)), String(pauseMs)],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
    t.same(await once(child, 'exit'), [0, null], `after ${pauseMs} ms`)
  }
})
