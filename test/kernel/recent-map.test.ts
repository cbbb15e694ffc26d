import { test } from 'tap'
import { RecentMap } from '../../src/kernel/recent-map.ts'

test('what was asked for lately stays, the newest value counts, and the rest is forgotten', async (t) => {
  const map = new RecentMap<number, string>(10)
  map.set(0, 'old')
  map.set(0, 'kept')
  for (let i = 1; i <= 1_000; i++) {
    map.set(i, String(i))
    if (map.get(0) !== 'kept') return t.fail(`forgotten after ${i}`)
  }
  t.equal(map.get(1_000), '1000')
  t.equal(map.get(991), '991', 'at least so many are held')
  const held = Array.from({ length: 1_000 }, (_, i) => map.get(i)).filter((value) => value !== undefined)
  t.ok(held.length <= 20, 'at most twice as many')
})
