import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { createClient } from 'redis'
import { test } from 'tap'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { examineHistory } from '../../src/engines/clickhouse-history/examine.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import type { Connection } from '../../src/engines/eventstoredb-log/connection.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import { examineServer } from '../../src/engines/eventstoredb-log/examine.ts'
import type { Examination, ExaminedSetting } from '../../src/engines/examination.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { makeCertificate } from '../support/certificate.ts'
import { openClusterFront } from '../support/engine-servers.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { folderOf } from '../support/folder-of.ts'
import { openRedisServer, type RedisServer, withoutRedis } from '../support/redis-server.ts'
import { until } from '../support/service.ts'

const named = ({ settings }: Pick<Examination, 'settings'>, beginning: string): ExaminedSetting => {
  const found = settings.find(({ name }) => name.startsWith(beginning))
  if (found === undefined) throw new Error(`nothing is said of ${beginning}`)
  return found
}

test('EventStoreDB: whether the user may start scavenges, without starting one', async (t) => {
  const server = await openEventstoredbServer({ path: `${folderOf(t)}/log` })
  const log = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: Date.now })
  t.teardown(async () => {
    await log.close()
    await server.close()
  })
  const right = async () => named((await log.examine?.()) ?? { settings: [] }, 'the right to start scavenges')
  t.match(await right(), { value: 'granted', isGood: true })
  server.mayScavenge = false
  t.match(await right(), { value: 'missing', isGood: false, advice: /group \$ops.*POST \/admin\/scavenge/ })
  server.fault = 'notReady'
  t.match(await right(), { value: undefined }, 'it cannot be told')
  t.equal(server.scavenges, 0)
})

test('EventStoreDB: the settings that decide what stays, with TLS of a private authority too', async (t) => {
  const files = makeCertificate(folderOf(t))
  if (files === undefined) return t.comment('there is no openssl to make a certificate')
  const asked: unknown[] = []
  const answer: RequestListener = ({ url, headers }, response) => {
    asked.push([url, headers.authorization])
    response.end('[{"name":"MemDb","value":"True"},{"name":"UnsafeDisableFlushToDisk","value":"False"}]')
  }
  const tls = { key: readFileSync(files.keyFile), cert: readFileSync(files.certFile) }
  const portOf = async (server: Server): Promise<number> => {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    t.teardown(() => void server.close())
    return (server.address() as AddressInfo).port
  }
  const secure = `esdb://ada:s%40cret@127.0.0.1:${await portOf(createSecureServer(tls, answer))}`
  const ca = `tlsCAFile=${encodeURIComponent(files.certFile)}`
  const plain = `esdb://127.0.0.1:${await portOf(createServer(answer))}?tls=false`
  for (const url of [`${secure}?${ca}`, plain]) {
    // Nobody answers whether it may scavenge.
    const { settings } = await examineServer({ url, version: '23.10.6' } as Connection)
    t.match(settings, [
      { name: 'MemDb', value: 'True', isGood: false, advice: /--mem-db/ },
      { name: 'UnsafeDisableFlushToDisk', value: 'False', isGood: true },
      { value: undefined },
    ])
  }
  t.same(asked, [
    ['/info/options', `Basic ${Buffer.from('ada:s@cret').toString('base64')}`],
    ['/info/options', undefined],
  ])
  const { settings } = await examineServer({ url: secure, version: '23.10.6' } as Connection)
  t.match(settings[0], { name: 'MemDb', value: undefined }, 'an authority that it does not know is told no password')
  t.equal(asked.length, 2)
})

test('Redis: replicas that follow, that hang, and none that a failover needs', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const open = async (args: string[] = []): Promise<RedisServer> => {
    const server = await openRedisServer(folderOf(t), args)
    t.teardown(() => server.kill('SIGKILL'))
    return server
  }
  const master = await open()
  const tables = await openRedisTables({ url: master.url })
  t.teardown(() => tables.close())
  const examined = async (): Promise<Examination> => (await tables.examine?.()) ?? { settings: [] }
  t.match(named(await examined(), 'WAIT'), { value: /there are no replicas/, isGood: true })

  const replica = await open(['--replicaof', '127.0.0.1', String(master.port)])
  const admin = createClient({ url: master.url })
  admin.on('error', () => undefined)
  await admin.connect()
  t.teardown(() => admin.destroy())
  await until('the replica to follow', async () => /state=online/.test(String(await admin.info('replication'))))
  let said: ExaminedSetting | undefined
  await until('the replica to confirm', async () => {
    said = named(await examined(), 'WAIT')
    return said.isGood
  })
  t.match(said, { value: 'confirmed by 1 of 1 or more replicas of each master' })
  t.match(named(await examined(), 'min-replicas'), { value: '0', isGood: false, advice: /min-replicas-to-write 1/ })
  await admin.configSet('min-replicas-to-write', '1')
  t.match(named(await examined(), 'min-replicas'), { value: '1', isGood: true })

  await tables.declare({ name: 'things', version: 1 })
  replica.process.kill('SIGSTOP')
  await tables.commit([{ table: 'things', scope: 'one', id: 'a', row: { on: true } }])
  const ill = await examined()
  replica.process.kill('SIGCONT')
  t.match(named(ill, 'WAIT'), {
    value: /^confirmed by 0 of 1 or more/,
    isGood: false,
    advice: /a replica that keeps up/,
  })
})

test('ClickHouse: what makes its rows durable, and policies that hide them from the service', {
  timeout: 900_000,
}, async (t) => {
  const store = await openClickhouseHistory({ url: await openClusterFront(t) })
  t.teardown(() => store.close())
  const examined = async (): Promise<Examination> => (await store.examine?.()) ?? { settings: [] }
  t.match(named(await examined(), 'fsync_after_insert'), { value: /first start creates the tables/, isGood: true })
  await openSchema(store, { days: 30, runDays: 3 })
  const well = await examined()
  t.match(named(well, 'fsync_after_insert'), { value: 'on', isGood: true })
  t.match(named(well, 'async_insert of'), { value: '0', isGood: true })
  t.match(named(well, 'insert_quorum of'), { value: 'auto', isGood: true })
  t.match(named(well, 'distributed_foreground_insert of'), { value: '1', isGood: true })
  t.match(named(well, 'cluster main'), {
    value: '1 shards of 1 replicas or more, internal_replication on',
    isGood: true,
  })
  t.match(named(well, 'the list of replicas'), { value: 'empty', isGood: true })
  // The user of the engine in process may not ask for policies.
  t.match(named(well, 'what row policies'), { value: undefined, advice: /GRANT SHOW ROW POLICIES/ })
  await store.command('ALTER TABLE trips_local MODIFY SETTING fsync_after_insert = 0')
  t.match(named(await examined(), 'fsync_after_insert'), {
    value: 'off for trips_local',
    isGood: false,
    advice: /ALTER TABLE trips_local MODIFY SETTING fsync_after_insert = 1/,
  })
})

/** Policies that the server tells of; undefined: it refuses to tell. */
const policiesOf = async (rows: object[] | undefined): Promise<ExaminedSetting> => {
  const store: Pick<HistoryStore, 'rows'> = {
    rows: async <R extends object>(sql: string) => {
      if (!sql.includes('system.row_policies')) return []
      if (rows === undefined) throw new Error('Code: 497. DB::Exception: Not enough privileges. (ACCESS_DENIED)')
      return rows as R[]
    },
  }
  return named(
    { settings: await examineHistory(store, async () => [{ name: 'async_insert', value: '1' }]) },
    'what row',
  )
}

test('ClickHouse: row policies, by whom they are for', async (t) => {
  const all = { name: 'waymark_service ON points', filter: '1', isRestrictive: 0, isOurs: 1 }
  const analyst = { name: 'fleet_analyst ON points', filter: "organizationId = 'a'", isRestrictive: 0, isOurs: 0 }
  t.match(await policiesOf([all, analyst]), { value: 'nothing', isGood: true })
  t.match(await policiesOf([analyst]), { value: /none for its user/, isGood: false, advice: /CREATE ROW POLICY/ })
  t.match(await policiesOf([{ ...analyst, isOurs: 1 }]), { value: 'rows, by fleet_analyst ON points', isGood: false })
  t.match(await policiesOf([all, { ...analyst, isOurs: 1 }]), { isGood: true }, 'permissive ones add up')
  t.match(await policiesOf([all, { ...analyst, isOurs: 1, isRestrictive: 1 }]), { isGood: false })
  t.match(await policiesOf(undefined), { value: undefined, advice: /GRANT SHOW ROW POLICIES/ })
  const settings = await examineHistory({ rows: async () => [] }, async () => [{ name: 'async_insert', value: '1' }])
  t.match(named({ settings }, 'async_insert'), { value: '1', isGood: false, advice: /only in its memory/ })
})
