import { test } from 'tap'
import { defer } from '../../src/kit/consumers/deferred.ts'
import { SoleOwner } from '../../src/kit/consumers/owners.ts'
import { PartitionFeed } from '../../src/kit/consumers/partition-feed.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { matcherCheckpoint } from '../../src/features/transitions/events.ts'
import { locationStream } from '../../src/features/locations/events.ts'
import { locationEntry } from '../../src/features/locations/location-entry.ts'
import { openMatcher } from '../../src/roles/matcher.ts'
import type { RoleServices } from '../../src/roles/role.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices } from '../support/open-services.ts'
import { until } from '../support/service.ts'

test('it is open before its state is loaded, and behind until then', async (t) => {
  const services = await openServices(folderOf(t))
  const { log, logger, tables } = services
  const loaded = defer()
  const take = tables.take.bind(tables)
  tables.take = async (name) => {
    if (name === matcherCheckpoint(1)) await loaded.promise
    return take(name)
  }
  const locations = new PartitionFeed({ log, logger, streamOf: locationStream, decode: locationEntry })
  const metrics = createMetrics()
  const parts = { ...services, feeds: { locations }, owners: new SoleOwner(services), partitions: 2, metrics }
  const role = await openMatcher(parts as unknown as RoleServices)
  const partitions = () => role.lags?.().map(({ partition, events }) => `${partition}: ${events}`)
  t.same(partitions(), ['0: 1', '1: 1'])
  await until('what can be loaded', () => partitions()?.length === 1)
  t.same(partitions(), ['1: 1'])
  loaded.resolve()
  await until('the rest', () => partitions()?.length === 0)
  await role.close()
  await locations.close()
  await metrics.close()
  await services.close()
})
