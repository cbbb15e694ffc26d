import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { type ChdbHistoryStore, openChdbHistoryStore } from '../../src/engines/history-store.chdb.ts'
import { historyStoreContract } from './history-store.ts'
import { folderOf } from '../support/folder-of.ts'

test('chDB keeps the promises of a history store', async (t) => {
  const folder = folderOf(t)
  await historyStoreContract(t, {
    open: (options) => openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch'), ...options }),
    crash: (store) => (store as ChdbHistoryStore).crash(),
  })
})

test('every acknowledged insert is there after SIGKILL', async (t) => {
  const folder = folderOf(t)
  const child = spawn(process.execPath, ['dist/test/contracts/history-store.chdb-child.js', folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const acknowledged: number[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged.push(Number(line))
    if (acknowledged.length === 12) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const there = new Set((await store.rows<{ id: number }>('SELECT id FROM kept')).map(({ id }) => id))
  t.ok(acknowledged.length >= 12)
  t.same(acknowledged.filter((id) => !there.has(id)), [])
  await store.close()
})
