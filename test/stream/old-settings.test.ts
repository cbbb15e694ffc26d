import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'tap'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { pluginSetting } from '../../src/features/plugins/plugin-setting.ts'
import { encodeJson } from '../../src/kernel/event.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { folderOf } from '../support/folder-of.ts'
import { call, signUp, startService, until } from '../support/service.ts'

const SECRET = 'of-a-version-before-9f2c'
const AT = '2026-01-01T08:00:00.000Z'

/** What a version before wrote: the settings in clear. */
const oldEvents = (organizationId: string, types: readonly string[]) =>
  types.map((type, i) => ({
    id: randomUUID(),
    type,
    data: encodeJson({
      organizationId,
      values: { plugin: 'Old', settings: { apiKey: `${SECRET}-${i}`, palette: 'dark' }, isActive: true },
      createdAt: AT,
      at: AT,
    }),
    isJson: true,
    metadata: { organizationId, actor: 'user:somebody' },
  }))

/** Settings that the log or a table has in clear. */
const inClear = async (data: string): Promise<string[]> => {
  const found: string[] = []
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  const end = new AbortController()
  for await (const { events, caughtUp } of log.follow({ prefixes: [''] }, undefined, end.signal)) {
    for (const event of events)
      if (Buffer.from(event.data).includes(SECRET)) found.push(`${event.stream} ${event.type}`)
    if (caughtUp) break
  }
  end.abort()
  await log.close()
  const tables = await openLmdbTableStore({ path: join(data, 'tables'), clock: systemClock })
  await tables.declare(pluginSetting.table)
  for await (const { row } of tables.scanAll(pluginSetting.table.name))
    if (JSON.stringify(row).includes(SECRET)) found.push(pluginSetting.table.name)
  await tables.close()
  return found
}

test('settings that stand in clear in the log are sealed once at the start, and their events are gone', async (t) => {
  const data = folderOf(t)
  const first = await startService(data)
  const { token, organizationId } = await signUp(first)
  await first.stop()
  const [changed, deleted] = [randomUUID(), randomUUID()]
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  await log.append(
    `pluginSetting-${changed}`,
    oldEvents(organizationId, ['pluginSettingCreated', 'pluginSettingChanged']),
    'none',
  )
  await log.append(
    `pluginSetting-${deleted}`,
    oldEvents(organizationId, ['pluginSettingCreated', 'pluginSettingDeleted']),
    'none',
  )
  await log.close()
  t.equal((await inClear(data)).length, 4)
  const second = await startService(data)
  const path = `/plugin-setting/${changed}`
  const read = async () => (await call(second, 'GET', path, { token })).json.data
  await until('the settings to be sealed', async () => (await read())?.version === 3)
  await until('the log to be walked', async () =>
    /^waymark_consumer_lag_events\{.*seal-settings.*\} 0$/m.test((await call(second, 'GET', '//metrics')).text),
  )
  t.match(await read(), { settings: { apiKey: '***', palette: 'dark' }, plugin: 'Old' })
  t.equal((await call(second, 'GET', `/plugin-setting/${deleted}`, { token })).status, 404)
  await second.stop()
  t.same(await inClear(data), [])
  const third = await startService(data)
  const kept = await call(third, 'PATCH', path, { token, body: { settings: { apiKey: '***', palette: 'light' } } })
  t.match(kept.json.data, { version: 4, settings: { apiKey: '***', palette: 'light' } }, 'and nothing is written anew')
  await third.stop()
})
