import { type Test, test } from 'tap'
import { KEPT_MIN, makeNotifications } from '../../../src/features/notifications/notification.ts'
import { notificationStream } from '../../../src/features/notifications/events.ts'
import { NOTIFICATIONS, NOTIFIED_USERS } from '../../../src/features/notifications/views.ts'
import { LATEST_POSITIONS } from '../../../src/features/locations/views.ts'
import { NO_ORGANIZATION } from '../../../src/kernel/table.ts'
import { idFrom, idSource } from '../../../src/kit/commands/ids.ts'
import { notificationFeed } from '../../../src/features/notifications/live-feed.ts'
import { sweepNotifications } from '../../../src/reactors/sweep/sweep-notifications.ts'
import { liveHubOver, watchLive } from '../../support/live-client.ts'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'
import { type Json, until } from '../../support/service.ts'

const DAY_MS = 86_400_000
const TASK_ID = idFrom('task', 'one')
const AUTOMATION_ID = idFrom('automation', 'one')

const open = async (t: Test) => {
  const world = await openIdentity(t, { tokenTtlMs: 90 * DAY_MS })
  const owner = await world.signup()
  const email = `ada.${owner.email}`
  const roleId = await world.roleId(owner, 'fieldUser')
  const made = await owner.call('POST', '/user', { name: 'Ada', email, password: PASSWORD, roleId, hubId: [] })
  const ada = await world.login(email)
  const tell = async (name: string, to: Session = ada, about = TASK_ID): Promise<string> => {
    const { organizationId, userId } = await world.callerOf(to)
    const notificationId = idFrom('notification', name)
    const at = new Date(world.clock.now()).toISOString()
    const { wrote } = await makeNotifications(
      world.log,
      userId,
      [
        {
          ...{ organizationId, userId, notificationId, at, event: 'onTaskFinished', automationId: AUTOMATION_ID },
          ...{ subject: `About ${name}`, text: `Text of ${name}.`, about: { type: 'task', id: about } },
        },
      ],
      { ids: idSource(world.clock.now()), metadata: { organizationId, actor: `automation:${AUTOMATION_ID}` } },
    )
    if (wrote !== undefined) await world.settle(wrote, 60_000)
    return notificationId
  }
  const list = async (query = '', by: Session = ada): Promise<Json> => {
    const { status, body } = await by.call('GET', `/notifications${query}`)
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  }
  const texts = async (query = '', by: Session = ada): Promise<string[]> =>
    (await list(query, by)).data.map(({ text }: Json) => text)
  return { ...world, owner, ada, adaId: made.body.data._id as string, tell, list, texts }
}

test('one reads one’s own notifications, newest first, and notes that they are read', async (t) => {
  const { ada, owner, tell, list, texts, clock } = await open(t)
  const one = await tell('one')
  clock.advance(1_000)
  await tell('one')
  const two = await tell('two')
  await tell('mine', owner)
  t.same(await texts(), ['Text of two.', 'Text of one.'], 'each once, one’s own')
  t.same(await texts('', owner), ['Text of mine.'])
  t.match((await list()).data[1], {
    ...{ _id: one, version: 1, isRead: false, readAt: undefined, automationId: AUTOMATION_ID },
    ...{ subject: 'About one', event: 'onTaskFinished', about: { type: 'task', id: TASK_ID }, userId: undefined },
  })
  t.equal((await list('?unread=true')).total, 2)
  const read = (id: string, by: Session = ada) => by.call('POST', `/notification/${id}/read`)
  const first = await read(one)
  t.match(first, { status: 200, body: { data: { _id: one, version: 2, isRead: true, readAt: String } } })
  clock.advance(1_000)
  t.same((await read(one)).body.data, first.body.data, 'again it changes nothing')
  t.same(await texts('?unread=true'), ['Text of two.'])
  t.same(await texts('?unread=false'), ['Text of one.'])
  t.same(await texts('?q=TEXT%20two'), ['Text of two.'])
  t.same(await texts(`?automationId=${AUTOMATION_ID}`), ['Text of two.', 'Text of one.'])
  t.match(await list('?limit=1&fields=text'), {
    data: [{ _id: two, text: 'Text of two.' }],
    total: 2,
    nextCursor: String,
  })
  const { nextCursor } = await list('?limit=1')
  t.match(await list(`?limit=1&cursor=${nextCursor}`), { data: [{ _id: one }], nextCursor: null })
  t.equal((await read(two, owner)).status, 404, 'another’s')
  t.equal((await read(idFrom('none', 'x'))).status, 404)
  t.match(await ada.call('GET', '/notifications?userId=x'), { status: 400 })
  t.match(await ada.call('GET', '/notifications?unread=perhaps'), { status: 400 })
})

test('all are read at once, and each that was not is told', async (t) => {
  const { ada, owner, tell, texts } = await open(t)
  for (const name of ['one', 'two', 'three']) await tell(name)
  await tell('mine', owner)
  const all = (by = ada) => by.call('POST', '/notifications/read')
  t.match(await all(), { status: 200, body: { data: { read: 3 } } })
  t.same(await texts('?unread=true'), [])
  t.same(await texts('?unread=true', owner), ['Text of mine.'], 'one’s own alone')
  t.match((await all()).body.data, { read: 0 })
  await tell('four')
  t.match((await all()).body.data, { read: 1 })
})

test('they are heard live by their reader alone, with the read mark, and by since after a restart', async (t) => {
  const { ada, owner, callerOf, tell, tables, ...world } = await open(t)
  await tables.declare(LATEST_POSITIONS)
  const openHub = async () => {
    const hub = liveHubOver({ ...world, tables })
    const feed = await notificationFeed().follow(hub)
    t.teardown(() => feed.close())
    return hub
  }
  const hub = await openHub()
  const channels = ['notification']
  const adas = await watchLive(hub, await callerOf(ada), { channels })
  const owners = await watchLive(hub, await callerOf(owner), { channels })
  const bare = { ...(await callerOf(ada)), permissions: new Set<string>(), hubIds: [] }
  const bares = await watchLive(hub, bare, { channels })
  const id = await tell('one')
  await until('it is heard', () => adas.events().length === 1)
  const shown = (await ada.call('GET', '/notifications')).body.data[0]
  t.same(adas.events()[0].event, shown, 'as its GET answers it')
  t.match((await ada.call('GET', `/notifications?_id=${id}`)).body, { total: 1, data: [{ _id: id }] })
  t.match((await ada.call('GET', `/notifications?_id=${shown.automationId}`)).body, { total: 0 })
  const read = (await ada.call('POST', `/notification/${id}/read`)).body.data
  await ada.call('POST', `/notification/${id}/read`)
  await tell('two')
  await until('the rest is heard', () => adas.events().length === 3)
  t.same(adas.events()[1].event, read)
  t.same(bares.events(), adas.events(), 'no permission is needed')
  await tell('mine', owner)
  await until('the owner’s', () => owners.events().length === 1)
  t.equal(adas.events().length, 3)
  for (const one of [hub, await openHub()]) {
    const again = await watchLive(one, await callerOf(ada), { channels, since: adas.events()[0].cursor })
    t.same(
      again.events().map(({ event }) => [event.text, event.isRead]),
      [
        ['Text of one.', true],
        ['Text of two.', false],
      ],
    )
  }
})

test('they are kept for 30 days, and of one user the newest 500 at least, in rows and in the log', async (t) => {
  const { ada, adaId, tell, texts, list, log, tables, clock, settle, rebuilt } = await openRebuilt(t)
  for (const name of ['old', 'older']) await tell(name)
  await ada.call('POST', `/notification/${idFrom('notification', 'old')}/read`)
  clock.advance(10 * DAY_MS)
  await tell('young')
  const sweep = async (): Promise<void> => {
    await sweepNotifications({ log, tables, clock }, new AbortController().signal)
    const position = await log.headPosition()
    await settle({ position, types: ['notificationsLeft'] }, 60_000)
  }
  await sweep()
  t.equal((await list('')).total, 3, 'their time is not over')
  clock.advance(20 * DAY_MS + 1)
  await sweep()
  t.same(await texts(), ['Text of young.'])
  t.notMatch(await inLog(log, adaId), /of old/, 'the log has let go of them too')
  t.match(await inLog(log, adaId), /of young/)
  await rebuilt()
  clock.advance(11 * DAY_MS)
  await sweep()
  t.same(await texts(), [])
  t.notMatch(await inLog(log, adaId), /Text of/)
  t.equal(await tables.get(NOTIFIED_USERS.name, NO_ORGANIZATION, adaId), undefined)
  for (let i = 0; i < KEPT_MIN + 110; i++) {
    clock.advance(1)
    await tell(`n${i}`)
  }
  const { total, data } = await list('?limit=1')
  t.ok(total >= KEPT_MIN && total <= KEPT_MIN + 100, `${total} are kept`)
  t.equal(data[0].text, `Text of n${KEPT_MIN + 109}.`)
  t.equal((await log.read(notificationStream(adaId), 0, 2_000)).length <= KEPT_MIN + 102, true)
  await rebuilt()
})

test('nothing is left of what was told to somebody who was deleted', async (t) => {
  const { owner, adaId, tell, log, tables, rebuilt, callerOf, ada } = await openRebuilt(t)
  const { organizationId } = await callerOf(ada)
  const id = await tell('secret')
  await tell('mine', owner)
  t.equal((await owner.call('DELETE', `/user/${adaId}`)).status, 200)
  t.notMatch(await inLog(log, adaId), /secret/)
  await until('its row is gone', async () => (await tables.get(NOTIFICATIONS.name, organizationId, id)) === undefined)
  await rebuilt()
  t.equal((await owner.call('GET', '/notifications')).body.total, 1)
})

const inLog = async (log: { read(stream: string, from: number, limit: number): Promise<Json[]> }, userId: string) =>
  (await log.read(notificationStream(userId), 0, 2_000)).map(({ data }) => Buffer.from(data).toString()).join('\n')

/** With a check that the tables come out the same when they are built anew from the log. */
const openRebuilt = async (t: Test) => {
  const world = await open(t)
  const { tables, owner, callerOf } = world
  const { organizationId } = await callerOf(owner)
  const rowsOf = async (): Promise<Json> => {
    const rows: Json[] = []
    for await (const { row } of tables.scan(NOTIFICATIONS.name, organizationId)) rows.push(row)
    for await (const { row } of tables.scan(NOTIFIED_USERS.name, NO_ORGANIZATION)) rows.push(row)
    return rows
  }
  const rebuilt = async (): Promise<void> => {
    const before = await rowsOf()
    await world.runner.rebuild('notifications')
    t.same(await rowsOf(), before, 'built anew from the log they are the same')
  }
  return { ...world, rebuilt }
}
