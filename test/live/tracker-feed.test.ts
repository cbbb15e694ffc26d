import { test } from 'tap'
import { directory } from '../../projections/directory.ts'
import type { Config } from '../../src/config.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { user } from '../../src/features/identity/users/user.ts'
import { tracker } from '../../src/features/trackers/declaration.ts'
import { appendFacts } from '../../src/kit/commands/handle-command.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import type { LogOrigin } from '../../src/kit/consumers/log-origin.ts'
import { settling } from '../../src/kit/consumers/settle.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { trackerFeed } from '../../src/live/tracker-feed.ts'
import { liveHub } from '../../src/roles/live.ts'
import { batchOf } from '../support/batches.ts'
import { folderOf } from '../support/folder-of.ts'
import { ownerOf } from '../support/geofence-world.ts'
import { watchLive } from '../support/live-client.ts'
import { openServices, runProjections } from '../support/open-services.ts'
import { until } from '../support/service.ts'

test('a tracker that the log has and the tables do not, when a process starts, is shown once they have it', async (t) => {
  const services = await openServices(folderOf(t), systemClock)
  t.teardown(() => services.close())
  const projection = directory([tracker.rows, user.rows])
  await services.tables.declare(LATEST_POSITIONS)
  for (const table of projection.tables) await services.tables.declare(table)
  const organizationId = idFrom('organization')
  const trackerId = idFrom('tracker')
  const at = new Date(systemClock.now()).toISOString()
  const data = { organizationId, values: { name: 'Van', kind: 'device' }, createdAt: at, at }
  await appendFacts(services.log, `tracker-${trackerId}`, [{ type: 'trackerCreated', data }], [idFrom('event')], 0, {})
  const view = liveHub({
    ...{ ...services, partitions: 1, metrics: createMetrics(), actions: [] },
    config: { staleAfterMs: 300_000, offlineAfterMs: 300_000 } as Config,
    origin: { logId: 'log', epoch: 0 } as LogOrigin,
    settle: settling(services, [projection]),
  } as unknown as Parameters<typeof liveHub>[0])
  let lost = (): void => undefined
  const feed = await trackerFeed(view, {
    checkpoint: (consumer) => services.tables.checkpoint(consumer),
    onLoss: (listener) => void (lost = listener),
  })
  t.teardown(() => feed.close())
  const { messages, buffer } = await watchLive(view, ownerOf(organizationId), { channels: ['positions'] })
  const point = { trackerId, organizationId, recordedAt: systemClock.now(), lat: 52, lng: 21 }
  const batch = batchOf([point], systemClock.now())
  view.positions.handle({ kind: 'points', partition: 0, revision: 0, position: 1, batch }, 0)
  t.same(messages[0].positions, [], 'nobody knows yet who may see it')
  const running = await runProjections(services, [projection])
  t.teardown(() => running.close())
  await until('its position', () => messages.some(({ type }) => type === 'positions'))
  t.match(messages.at(-1).positions, [{ trackerId, name: 'Van' }])
  t.equal(buffer.closedWith, undefined)
  const deletion = { type: 'trackerDeleted', data: { organizationId, values: { name: 'Van', kind: 'device' }, at } }
  await appendFacts(services.log, `tracker-${trackerId}`, [deletion], [idFrom('deletion')], 1, {})
  await until('that it is gone', () => messages.some(({ gone }) => gone?.includes(trackerId)))
  const late = { ...point, recordedAt: point.recordedAt + 1 }
  view.positions.handle(
    { kind: 'points', partition: 0, revision: 1, position: 2, batch: batchOf([late], late.recordedAt) },
    0,
  )
  const again = await watchLive(view, ownerOf(organizationId), { channels: ['positions'] })
  t.same(again.messages[0].positions, [], 'nobody sees a point that was on its way')
  lost()
  t.equal(buffer.closedWith, 1012, 'what it holds may lack a tracker that the tables had lost')
})
