import { test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { Epoch } from '../../src/engines/redis-tables/epoch.ts'
import { Places } from '../../src/engines/redis-tables/places.ts'
import type { Registry } from '../../src/engines/redis-tables/registry.ts'
import { slotOf } from '../../src/engines/redis-tables/slots.ts'

/** As three masters share the slots: in the middle of a part that has one mark. */
const FIRST_OF_SECOND = 5_461
const KEYS = 2_000

test('whether a server of a cluster lost its rows is asked of that server, wherever slots are divided', async (t) => {
  const serverOf = (key: string): string => (slotOf(key) < FIRST_OF_SECOND ? 'first' : 'second')
  for (const flushed of ['first', 'second']) {
    const places = new Places('wm')
    places.epoch = 'now'
    const connection = {
      isCluster: true,
      serverOf,
      call: async (mark: string) => (serverOf(mark) === flushed ? null : Buffer.from('now')),
    }
    const registry = { epoch: () => Promise.reject(new Error('is not asked here')) }
    const epoch = new Epoch(connection as unknown as RedisConnection, places, registry as unknown as Registry)
    const wrong: string[] = []
    for (let i = 0; i < KEYS; i++) {
      const key = places.ofCounter('org', String(i))
      const isLost = await epoch.confirm(key).then(
        () => false,
        () => true,
      )
      if (isLost !== (serverOf(key) === flushed)) wrong.push(key)
    }
    t.same(wrong, [])
  }
})
