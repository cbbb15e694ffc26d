import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tap, { test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { openRedisCluster } from '../support/redis-cluster.ts'
import { hasRedis } from '../support/redis-server.ts'
import { tableStoreContract } from './table-store.ts'

if (hasRedis) {
  const folder = mkdtempSync(join(tmpdir(), 'redis-cluster-'))
  const cluster = await openRedisCluster(folder)
  tap.teardown(async () => {
    await cluster.close()
    rmSync(folder, { recursive: true, force: true })
  })
  tableStoreContract('redis cluster', {
    open: async () => {
      const store = await openRedisTables({ url: `${cluster.url}?prefix=${randomUUID()}` })
      return { store, now: () => Date.now(), pass: (ms) => new Promise((resume) => setTimeout(resume, ms)) }
    },
  })
} else
  test('redis cluster', { skip: 'redis-server is not installed (apt-get install redis-server)' }, async () => undefined)
