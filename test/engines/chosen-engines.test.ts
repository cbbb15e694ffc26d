import { Module } from 'node:module'
import { test } from 'tap'
import { openTables } from '../../src/open-engines.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { folderOf } from '../support/folder-of.ts'

const loaded = (): string[] => [
  ...(process.report.getReport() as unknown as { sharedObjects: string[] }).sharedObjects,
  ...Object.keys((Module as unknown as { _cache: object })._cache),
]

test('an engine that is not chosen is not loaded: chDB alone takes 150 MB', async (t) => {
  const urls = { dataPath: folderOf(t), logUrl: 'lmdb:', tablesUrl: 'lmdb:', historyUrl: 'chdb:', filesUrl: 'file:' }
  const tables = await openTables(urls, systemClock)
  t.teardown(() => tables.close())
  const has = (name: string): boolean => loaded().some((file) => file.includes(`/node_modules/${name}`))
  t.ok(has('lmdb/') || has('@lmdb/'), 'one that is chosen is seen')
  for (const name of ['chdb', '@chdb', '@clickhouse', 'redis', '@redis', '@eventstore', '@aws-sdk'])
    t.notOk(has(`${name}/`), name)
})
