import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { openRedisTables } from '../../../src/engines/redis-tables/redis-tables.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { LeaseOwners } from '../../../src/kit/consumers/leases.ts'
import { type Projection, tablesOf } from '../../../src/kit/consumers/projection.ts'
import { RunningProjection } from '../../../src/kit/consumers/run-projection.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { openRedisServer, withoutRedis } from '../../support/redis-server.ts'
import { until } from '../../support/service.ts'

const LOOK_MS = 1_000

const seen = (version: number): Projection => ({
  name: 'seen',
  version,
  tables: [{ name: 'seen', version }],
  prefixes: ['thing-'],
  inputs: ['made'],
  apply: ({ stream }, rows) => rows.put('seen', 'all', stream, { version }),
})

test('a projection is built again by its owner where a process of another version declared its table beside it', {
  skip: withoutRedis,
}, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const services = await openServices(folderOf(t))
  t.teardown(async () => {
    await services.close()
    await server.kill('SIGKILL')
  })
  const made = { id: randomUUID(), type: 'made', data: encodeJson({}), isJson: true, metadata: {} }
  await services.log.append('thing-1', [made], 'none')
  const start = async (version: number) => {
    const tables = await openRedisTables({ url: server.url })
    for (const table of tablesOf(seen(version))) await tables.declare(table)
    return tables
  }

  const [newer, clock] = [await start(2), new FakeClock()]
  const life = { node: 'newer', id: randomUUID() }
  const owners = await LeaseOwners.open({ tables: newer, clock, logger: services.logger, life })
  const running = new RunningProjection(seen(2), { ...services, tables: newer, clock })
  const joined = await owners.join([running])
  await running.ready()
  t.same(await newer.get('seen', 'all', 'thing-1'), { version: 2 })

  const older = await start(1)
  t.ok(older.isLost('seen'), 'it waits for rows of its own shape')
  await until('the owner to have put its own in place', () => {
    clock.advance(LOOK_MS)
    return !older.isLost('seen')
  })
  t.same(await newer.get('seen', 'all', 'thing-1'), { version: 2 })
  await t.rejects(older.get('seen', 'all', 'thing-1'), { code: 'engine_down' }, 'the other version reads none of them')
  t.match(services.lines, [{ level: 'warn', msg: /another version of Waymark changed them/ }])

  await joined.leave()
  await owners.close()
  for (const tables of [older, newer]) await tables.close()
})
