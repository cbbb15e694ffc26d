import { test } from 'tap'
import { share } from '../../../src/features/shares/share.ts'
import { SHARE, SHARE_TOKENS, SHARES } from '../../../src/features/shares/views.ts'
import { TASK } from '../../../src/features/tasks/views.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import { NO_ORGANIZATION } from '../../../src/kernel/table.ts'
import { idFrom, idSource } from '../../../src/kit/commands/ids.ts'
import { formatTime } from '../../../src/kit/http/request-context.ts'
import { sweepShares } from '../../../src/reactors/sweep/sweep-shares.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'

const organizationId = idFrom('organization', 'one')
const [here, there] = [idFrom('hub', 'here'), idFrom('hub', 'there')]
const HOUR_MS = 3_600_000

test('shares that have ended are deleted, and those of what came to another hub follow it', async (t) => {
  const clock = new FakeClock()
  const services = await openServices(folderOf(t), clock, [share])
  t.teardown(() => services.close())
  const { tables, log } = services
  for (const table of [SHARE_TOKENS, ...[SHARES, 'tasks', 'trackers'].map((name) => ({ name, version: 1 }))])
    await tables.declare(table)
  const writer = share.writer(services)
  const put = (table: string, scope: string, id: string, row: object | null) =>
    tables.commit([{ table, scope, id, row: row === null ? null : { ...row } }])
  const task = (name: string, row: object | null) =>
    put('tasks', organizationId, idFrom('task', name), row && { _id: idFrom('task', name), hubId: here, ...row })
  const now = formatTime(clock.now())
  const ids = new Map<string, string>()
  for (const name of ['open', 'over', 'moved', 'gone', 'unknown']) {
    await task(name, { state: 'assigned', updatedAt: now })
    const at = clock.now()
    const origin = { organizationId, now: at, ids: idSource(at), metadata: { organizationId } }
    const { row } = await writer.create(origin, { taskId: idFrom('task', name) })
    ids.set(name, row._id as string)
    await put(SHARES, organizationId, row._id as string, row)
    await put(SHARE_TOKENS.name, NO_ORGANIZATION, name, { organizationId, shareId: row._id })
  }
  const bus = idFrom('tracker', 'bus')
  const made = { _id: bus, hubIds: [here], createdAt: now }
  await put('trackers', organizationId, bus, made)
  const origin = { organizationId, now: clock.now(), ids: idSource(clock.now()), metadata: { organizationId } }
  const expiresAt = formatTime(clock.now() + 24 * HOUR_MS)
  const { row: ofBus } = await writer.create(origin, { trackerId: bus, expiresAt })
  ids.set('anew', ofBus._id as string)
  await put(SHARES, organizationId, ofBus._id as string, ofBus)
  await put(SHARE_TOKENS.name, NO_ORGANIZATION, 'anew', { organizationId, shareId: ofBus._id })
  await put('trackers', organizationId, bus, { ...made, createdAt: formatTime(clock.now() + HOUR_MS) })
  await task('over', { state: 'finished', finishedAt: now, updatedAt: now })
  await task('moved', { state: 'assigned', hubId: there, updatedAt: now })
  await task('gone', null)
  await task('unknown', null)
  const event = (type: string) => ({ id: idFrom(type), type, data: encodeJson({}), isJson: true, metadata: {} })
  await log.append(`task-${idFrom('task', 'gone')}`, [event(TASK.deleted)], 'any')
  // Its table has lost it, or does not have it yet.
  await log.append(`task-${idFrom('task', 'unknown')}`, [event(TASK.created)], 'any')
  clock.advance(HOUR_MS)
  for (let n = 0; n < 2; n++) await sweepShares(services, new AbortController().signal)
  const typesOf = async (name: string): Promise<string[]> =>
    (await log.read(`share-${ids.get(name)}`, 0, 10)).map(({ type }) => type)
  t.same(await typesOf('open'), [SHARE.created])
  t.same(await typesOf('over'), [SHARE.created, SHARE.deleted])
  t.same(await typesOf('gone'), [SHARE.created, SHARE.deleted])
  t.same(await typesOf('unknown'), [SHARE.created])
  t.same(await typesOf('anew'), [SHARE.created, SHARE.deleted], 'its tracker was made anew')
  t.same(await typesOf('moved'), [SHARE.created, SHARE.changed])
  const { state } = await writer.load(ids.get('moved') as string)
  t.same(state.values.hubIds, [there])
})
