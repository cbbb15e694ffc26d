import { test } from 'tap'
import { RecentEntries } from '../../src/engines/lmdb-log/recent-entries.ts'

test('the newest entries of the index are known whole, and older ones are said not to be', async (t) => {
  const recent = new RecentEntries(100)
  t.same(recent.between(1, 100, 200, 10), [], 'nothing was appended yet')
  t.equal(recent.between(1, 99, 200, 10), undefined, 'what was there before is not known')
  const all = Array.from({ length: 10_000 }, (_, i) => ({ position: 100 + 3 * i, category: i % 3, no: i, revision: 0 }))
  for (const entry of all) recent.add(entry)
  const known = all.filter(({ position }) => recent.between(0, position, position, 1) !== undefined)
  t.ok(known.length >= 2_000 && known.length <= 4_096, 'so many are kept')
  t.same(known, all.slice(-known.length), 'and they are the last ones')
  const [first] = known
  t.equal(recent.between(0, first.position - 1, first.position + 100, 10), undefined)
  for (const category of [0, 1, 2, 3])
    for (const from of [first.position, first.position + 1, first.position + 1_000])
      for (const limit of [1, 50, 5_000]) {
        const through = from + 900
        const wanted = all.filter((e) => e.category === category && e.position >= from && e.position <= through)
        t.same(recent.between(category, from, through, limit), wanted.slice(0, limit))
      }
})
