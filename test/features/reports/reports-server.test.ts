import { test } from 'tap'
import { PointSteps } from '../../../projections/point-steps.ts'
import { openClickhouseHistory } from '../../../src/engines/clickhouse-history/clickhouse-history.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { openClusterFront } from '../../support/engine-servers.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { demoTrace, GAP_MS, openReports } from '../../support/reports-world.ts'

const BOUNDS = 'from=2024-02-19T00:00:00Z&to=2024-02-20T00:00:00Z'

test('a cluster of servers answers reports as the embedded history does, also from what is rolled up', async (t) => {
  const history = await openClickhouseHistory({ url: await openClusterFront(t) })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const [server, embedded] = [await openReports(t, {}, history), await openReports(t)]
  for (const world of [server, embedded]) await world.insert(demoTrace())
  const clock = new FakeClock(Date.parse('2024-02-19T20:00:00Z'))
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  for (const step of ['from points', 'rolled up']) {
    for (const report of [
      'summary?per=day',
      'stops?minSeconds=120',
      'visits?trackerId=00000000-0000-7000-8000-000000000001',
    ])
      t.strictSame(
        await server.rows(`${report}&${BOUNDS}`),
        await embedded.rows(`${report}&${BOUNDS}`),
        `${report} ${step}`,
      )
    await new PointSteps({ history, clock, logger, gapMs: GAP_MS }).rollUpDue()
  }
  const organizationId = server.organizationId
  await history.erase([{ organizationId }])
  t.strictSame(await server.rows(`summary?${BOUNDS}`), [])
})
