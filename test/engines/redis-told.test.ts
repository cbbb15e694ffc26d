import { test } from 'tap'
import { termsOf } from '../../src/engines/redis-tables/terms.ts'
import { concerns, ToldChanges } from '../../src/engines/redis-tables/told-changes.ts'

const TABLE = { name: 'things', version: 1, equality: ['status'] }
const MANY = 100_000
const BYTES_MAX = 40_000

const behind = (part: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(part.length)
  return Buffer.concat([length, part])
}

/** What Redis tells of a row that changed from one status to another. */
const told = (id: string, before: string, now: string): Buffer =>
  Buffer.concat([Buffer.from(id), ...[before, now].map((status) => termsOf(TABLE, id, { status }).packed)].map(behind))

test('of any number of changes by another process the last are known, and no more is kept', async (t) => {
  const changes = new ToldChanges('token-0')
  for (let no = 1; no <= MANY; no++)
    changes.add([Buffer.from(`token-${no}`), told(`thing-${no}`, 'open', no % 2 === 0 ? 'done' : 'late')])
  const { told: kept } = changes as unknown as { told: { token: string; packed: Buffer }[] }
  const bytes = kept.reduce((sum, { token, packed }) => sum + token.length + packed.length, 0)
  t.ok(kept.length > 10 && bytes < BYTES_MAX, `${kept.length} changes, ${bytes} bytes`)
  t.equal(changes.last, `token-${MANY}`)
  t.equal(changes.since('token-0'), undefined, 'what is behind a hole is not known')
  t.equal(changes.since(`token-${MANY - kept.length - 1}`), undefined)
  t.equal(changes.since(`token-${MANY - kept.length}`)?.length, kept.length)
  const last = changes.since(`token-${MANY - 2}`)
  t.same(
    last?.map(({ id }) => id),
    [`thing-${MANY - 1}`, `thing-${MANY}`],
  )
  const isConcerned = (status: string): unknown => last?.map(concerns({ where: { status }, limit: 1 }))
  t.same(['open', 'late', 'done', 'other'].map(isConcerned), [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])
})
