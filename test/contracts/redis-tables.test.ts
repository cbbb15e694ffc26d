import { randomUUID } from 'node:crypto'
import tap, { test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { hasRedis, openRedisServer } from '../support/redis-server.ts'
import { tableStoreContract } from './table-store.ts'

if (hasRedis) {
  const server = await openRedisServer('/tmp')
  tap.teardown(() => server.kill())
  tableStoreContract('redis', {
    open: async () => {
      const store = await openRedisTables({ url: `${server.url}?prefix=${randomUUID()}` })
      return { store, now: () => Date.now(), pass: (ms) => new Promise((resume) => setTimeout(resume, ms)) }
    },
  })
} else test('redis', { skip: 'redis-server is not installed (apt-get install redis-server)' }, async () => undefined)
