import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { Erased } from '../../projections/erasures.ts'
import { HistoryComparison } from '../../projections/history-comparison.ts'
import { PointBuffer } from '../../projections/location-history.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { POINTS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { LATE } from '../../src/engines/clickhouse-sql/point-steps.ts'
import { folderOf } from '../support/folder-of.ts'
import { batchOf, uuidOf } from '../support/trace-batches.ts'

const organizationId = uuidOf('organization')
const NOW = Date.parse('2026-06-01T00:00:00Z')
const BLOCKS = 5
const BLOCK_POINTS = 10
/** One part for two blocks: the bytes of 11 to 19 points. */
const PART_BYTES = 1_200

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const blocks = Array.from({ length: BLOCKS }, (_, revision) => () => {
    const buffer = new PointBuffer(0, new Erased())
    const points = Array.from({ length: BLOCK_POINTS }, (_, i) => ({
      organizationId,
      trackerId: uuidOf(`tracker ${i}`),
      recordedAt: NOW + revision,
      latE7: i,
      lngE7: 2,
      flags: 0,
    }))
    buffer.add({ partition: 0, revision, position: revision, kind: 'points', batch: batchOf(points, NOW + revision) })
    return buffer.blocks()[0].block
  })
  for (const block of blocks) await history.insert(POINTS, block(), randomUUID())
  const written: string[] = []
  const command = history.command.bind(history)
  history.command = async (sql, parameters) => {
    if (sql.startsWith('INSERT')) written.push(/INTO (\w+)/.exec(sql)?.[1] ?? '')
    if (sql.startsWith('TRUNCATE')) written.push('next part')
    await command(sql, parameters)
  }
  const compare = async (since = 0) => {
    written.length = 0
    const comparison = new HistoryComparison(history, POINTS, since, PART_BYTES)
    await comparison.begin()
    for (const block of blocks) await comparison.take(block(), randomUUID())
    await comparison.end()
    return comparison.found
  }
  const count = async (): Promise<number> =>
    (await history.rows<{ points: number }>(`SELECT count() AS points FROM ${POINTS} FINAL`))[0].points
  return { compare, count, written, command }
}

test('a part that is as in the log is not written again, and others are whole afterwards', async (t) => {
  const { compare, count, written, command } = await open(t)
  t.match(await compare(), { rows: BLOCKS * BLOCK_POINTS, missing: 0, different: 0 })
  t.same(written, ['next part', 'next part', 'next part'], 'two blocks make a part, and nothing is written')
  await command(`DELETE FROM ${POINTS} WHERE recordedAt = fromUnixTimestamp64Milli(${NOW + 3}, 'UTC') AND latE7 < 4`)
  t.equal(await count(), BLOCKS * BLOCK_POINTS - 4)
  t.match(await compare(), { rows: BLOCKS * BLOCK_POINTS, missing: 4, different: 0 })
  t.same(written, ['next part', LATE, POINTS, 'next part', 'next part'])
  t.equal(await count(), BLOCKS * BLOCK_POINTS)
})

test('points that are about to expire are not compared, and are put back', async (t) => {
  const { compare, count, written, command } = await open(t)
  await command(`DELETE FROM ${POINTS} WHERE recordedAt < fromUnixTimestamp64Milli(${NOW + 1}, 'UTC')`)
  t.match(await compare(NOW + 1), { rows: (BLOCKS - 1) * BLOCK_POINTS, missing: 0, different: 0 })
  t.same(written, [LATE, POINTS, 'next part', 'next part', 'next part'])
  t.equal(await count(), BLOCKS * BLOCK_POINTS)
})

test('the blocks that are left at the end are compared', async (t) => {
  const { compare, count, command } = await open(t)
  await command(`TRUNCATE TABLE ${POINTS}`)
  t.match(await compare(), { rows: BLOCKS * BLOCK_POINTS, missing: BLOCKS * BLOCK_POINTS })
  t.equal(await count(), BLOCKS * BLOCK_POINTS)
})
