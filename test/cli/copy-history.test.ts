import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { copyHistory, endHistoryCopy } from '../../src/cli/transfer/copy-history.ts'
import { readHistoryCopy } from '../../src/engines/clickhouse-sql/copy-mark.ts'
import { digestOfPart, historyParts, slicesOf } from '../../src/engines/clickhouse-sql/history-parts.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { realClock } from '../contracts/clocks.ts'
import { openClusterFront, startProcess } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { insertDecided } from '../support/history-writers.ts'

const RETENTION = { days: 36_500, runDays: 36_500 }
const ORGANIZATION = '01900000-0000-7000-8000-0000000000a1'
const HOUR_MS = 3_600_000
const AT = Date.parse('2025-11-20T08:00:00Z')
const MONTHS = 3
const HOURS = 6

const open = async (t: Test, url: string): Promise<HistoryStore> => {
  const store = await openClickhouseHistory({ url })
  t.teardown(() => store.close())
  return store
}

const openFront = async (t: Test): Promise<HistoryStore> => {
  const { child, port } = await startProcess('dist/test/support/clickhouse/main.js', join(folderOf(t), randomUUID()))
  t.teardown(() => child.kill('SIGKILL'))
  return open(t, `http://127.0.0.1:${port}/default`)
}

/** Rows of several months, some hours of each, points twice in another version. */
const fill = async (store: HistoryStore): Promise<void> => {
  await openSchema(store, RETENTION)
  const times = `arrayJoin(arrayMap(n -> fromUnixTimestamp64Milli(${AT} + intDiv(n, ${HOURS}) * 31 * 24 * ${HOUR_MS}
    + (n % ${HOURS}) * ${HOUR_MS}, 'UTC'), range(${MONTHS * HOURS})))`
  for (const version of [1, 2])
    await store.command(
      `INSERT INTO points (organizationId, trackerId, recordedAt, latE7, version) SELECT '${ORGANIZATION}', '${ORGANIZATION}', ${times}, ${version}, ${version}`,
    )
  const point = { recordedAt: AT, lat: 1, lng: 2 }
  const decided = { kind: 'transition', organizationId: ORGANIZATION, trackerId: 'a', geofenceId: 'g' } as const
  const rest = { geofenceGroupId: 'gg', type: 'entry', cause: 'point', at: AT, point } as const
  const source = { sourceRevision: 0, ordinal: 0, sourceLoggedAt: AT }
  const decisions = [{ ...decided, ...rest, _id: 't1' }]
  await insertDecided(store, { revision: 3, decided: { ...source, decisions } }, 'once')
}

const digestsOf = async (store: HistoryStore) => {
  const digests = []
  for (const part of await historyParts(store))
    digests.push({ ...part, ...(await digestOfPart(store, part, RETENTION, AT)) })
  return digests
}

test('the history of a cluster is copied in pieces to one server; cut off, it is not taken for whole, and goes on', {
  timeout: 900_000,
}, async (t) => {
  const from = await open(t, await openClusterFront(t))
  const to = await openFront(t)
  await fill(from)
  const wanted = await digestsOf(from)
  t.match(wanted, [
    { table: 'points', rows: HOURS },
    { table: 'points', rows: HOURS },
    { table: 'points', rows: HOURS },
    { table: 'transitions', rows: 1 },
  ])
  const pieces = await slicesOf(from, wanted[0], 4)
  t.match(
    pieces,
    [{ until: AT + 2 * HOUR_MS }, { from: AT + 2 * HOUR_MS, until: AT + 4 * HOUR_MS }, { from: AT + 4 * HOUR_MS }],
    'each hour has two rows before they are merged',
  )

  let inserts = 0
  let insertsMax = 5
  const dying: HistoryStore = Object.create(to, {
    insert: {
      value: async (...args: Parameters<HistoryStore['insert']>) => {
        if (inserts++ === insertsMax) throw new Error('killed')
        await to.insert(...args)
      },
    },
  })
  const options = { from, clock: realClock, logId: 'one', sliceRowsMax: 4 }
  await t.rejects(copyHistory({ ...options, to: dying }), { message: 'killed' })
  t.same(await readHistoryCopy(to), { logId: 'one', hasEnded: false })
  const told: string[] = []
  inserts = 0
  insertsMax = Number.POSITIVE_INFINITY
  const onPart = ({ table, month }: { table: string; month: number }, rows: number): void =>
    void told.push(`${table} ${month} ${rows}`)
  t.equal(await copyHistory({ ...options, to: dying, onPart }), MONTHS * HOURS + 1)
  t.same(told, ['points 202511 6', 'points 202512 6', 'points 202601 6', 'transitions 202511 1'])
  t.equal(inserts, pieces.length * MONTHS - 5 + 1, 'what was there already is not inserted again')
  t.same(await digestsOf(to), wanted)
  t.same(await readHistoryCopy(to), { logId: 'one', hasEnded: false }, 'until the source is known to be as it was')
  await endHistoryCopy(to, 'one')
  t.same(await readHistoryCopy(to), { logId: 'one', hasEnded: true })
})
