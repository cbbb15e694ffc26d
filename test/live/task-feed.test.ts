import { test, type Test } from 'tap'
import { TASK } from '../../src/features/tasks/views.ts'
import { decodeJson, encodeJson, type NewEvent } from '../../src/kernel/event.ts'
import type { ResourceData } from '../../src/kit/commands/declared-event.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import type { LiveHub } from '../../src/live/hub.ts'
import { taskFeed } from '../../src/features/tasks/live-feed.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { liveHubOver, type LiveWatcher, watchLive } from '../support/live-client.ts'
import type { Session } from '../support/open-identity.ts'
import { openTasks } from '../support/open-tasks.ts'
import { type Json, until } from '../support/service.ts'

const CHANNEL = { channels: ['task'] }

const open = async (t: Test) => {
  const world = await openTasks(t)
  await world.tables.declare(LATEST_POSITIONS)
  const openHub = async (): Promise<LiveHub> => {
    const hub = liveHubOver(world)
    const feed = await taskFeed().follow(hub)
    t.teardown(() => feed.close())
    return hub
  }
  const watch = async (hub: LiveHub, session: Session, message: object = CHANNEL): Promise<LiveWatcher> =>
    watchLive(hub, await world.callerOf(session), { ...CHANNEL, ...message })
  return { ...world, openHub, watch }
}

/** What was heard: title and state, or `gone`. */
const heard = ({ events }: LiveWatcher): string[] =>
  events().map(({ event }) => (event.gone ? 'gone' : `${event.title} ${event.state}`))

const hears = async (t: Test, what: string, watcher: LiveWatcher, expected: readonly string[]): Promise<void> => {
  await until(what, () => heard(watcher).length >= expected.length)
  t.same(heard(watcher), expected, what)
}

test('each change of a task is heard by those who see it, as its GET answers it, until it leaves their sight', async (t) => {
  const { owner, ada, bob, hubId, other, task, move, openHub, watch } = await open(t)
  const hub = await openHub()
  const [all, adas, bobs, here, there] = [
    await watch(hub, owner),
    await watch(hub, ada.session),
    await watch(hub, bob.session),
    await watch(hub, owner, { hubId }),
    await watch(hub, owner, { hubId: other }),
  ]
  const deaf = [await watch(hub, owner, { teamId: other }), await watch(hub, owner, { channels: ['job'] })]
  const one = await task({ title: 'A' })
  const shown = async (session = owner): Promise<Json> => (await session.call('GET', `/task/${one._id}`)).body.data
  await until('the first', () => all.events().length > 0)
  t.same(all.events()[0].event, await shown(), 'all that its GET answers')
  await move(one._id, 'assign', { assigneeIds: [ada.id] })
  await until('the second', () => adas.events().length > 0)
  t.same(adas.events()[0].event, await shown(ada.session), 'as its GET answers it to a field user')
  await move(one._id, 'assign', { assigneeIds: [bob.id] })
  await move(one._id, 'move', { hubId: other })
  await move(one._id, 'start', {}, bob.session)
  await owner.call('DELETE', `/task/${one._id}`)
  await hears(t, 'whoever dispatches', all, [
    ...['A new', 'A assigned', 'A assigned', 'A assigned', 'A inProgress'],
    'gone',
  ])
  await hears(t, 'who loses it', adas, ['A assigned', 'gone'])
  await hears(t, 'who gets it', bobs, ['A assigned', 'A assigned', 'A inProgress', 'gone'])
  await hears(t, 'the hub that it leaves', here, ['A new', 'A assigned', 'A assigned', 'gone'])
  await hears(t, 'the hub that it comes to', there, ['A assigned', 'A inProgress', 'gone'])
  t.same(adas.events()[1].event, { _id: one._id, gone: true }, 'nothing is said of where it went')
  for (const { events } of deaf) t.same(events(), [])
})

test('whoever comes back hears what was missed, each change, after a restart too', async (t) => {
  const { owner, ada, bob, task, move, openHub, watch } = await open(t)
  const hub = await openHub()
  const [all, adas] = [await watch(hub, owner), await watch(hub, ada.session)]
  const one = await task({ title: 'A', assigneeIds: [ada.id] })
  await hears(t, 'the first', all, ['A assigned'])
  const since = all.events()[0].cursor
  const begin = adas.messages[0].cursor
  await move(one._id, 'start', {}, ada.session)
  await owner.call('PATCH', `/task/${one._id}`, { title: 'B' })
  await move(one._id, 'assign', { assigneeIds: [bob.id] })
  const two = await task({ title: 'C' })
  await owner.call('DELETE', `/task/${two._id}`)
  const rest = ['A inProgress', 'B inProgress', 'B inProgress', 'C new', 'gone']
  await hears(t, 'all', all, ['A assigned', ...rest])
  for (const [what, one] of [
    ['the same process', hub],
    ['another process', await openHub()],
  ] as const) {
    const again = await watch(one, owner, { since })
    t.same(heard(again), rest, `${what}: all that was missed comes before the snapshot`)
    t.equal(again.messages.at(-1).type, 'snapshot')
    const last = await watch(one, owner, { since: again.events()[1].cursor })
    t.same(heard(last), rest.slice(2), `${what}: from the middle`)
    const own = await watch(one, ada.session, { since: begin })
    t.same(heard(own), ['A assigned', 'A inProgress', 'B inProgress', 'gone'], `${what}: what a field user missed`)
    t.notOk(own.messages.some(({ type }) => type === 'gap'))
    t.match((await watch(one, owner, { since: 'AA' })).messages, [{ type: 'gap' }, { type: 'snapshot' }], what)
  }
})

test('who gets other rights is told to read tasks again, and hears by the new ones', async (t) => {
  const { owner, ada, other, make, task, callerOf, openHub, watch, hubId, clock } = await open(t)
  const hub = await openHub()
  const [adas, positions] = [
    await watch(hub, ada.session),
    await watch(hub, ada.session, { channels: ['task', 'job'] }),
  ]
  const team = await make('/team', { name: 'Night', hubId, userIds: [ada.id] })
  for (const one of [adas, positions]) one.connection.reauthorized?.(await callerOf(ada.session))
  clock.advance(20)
  for (const one of [adas, positions])
    await until('a gap and a snapshot', () => one.messages.map(({ type }) => type).join() === 'snapshot,gap,snapshot')
  await task({ title: 'T', teamId: team._id })
  await hears(t, 'as a member of the team', adas, ['T assigned'])
  await task({ title: 'U', hubId: other })
  adas.connection.reauthorized?.(await callerOf(ada.session))
  t.equal(adas.messages.filter(({ type }) => type === 'gap').length, 1, 'the same rights again say nothing')
  const bare = { ...(await callerOf(ada.session)), permissions: new Set<string>() }
  adas.connection.reauthorized?.(bare)
  t.match(adas.messages.at(-1), { type: 'error', id: 's', code: 'forbidden' })
  t.match((await watchLive(hub, bare, CHANNEL)).messages, [{ type: 'error', code: 'forbidden' }])
  t.ok(owner)
})

test('who reads more slowly than tasks change is closed with 4429, and resumes; others hear all of it', async (t) => {
  const { owner, task, openHub, watch, log } = await open(t)
  const hub = await openHub()
  const [slow, quick] = [await watch(hub, owner), await watch(hub, owner)]
  const first = await task()
  await until('the first', () => slow.events().length + quick.events().length === 2)
  slow.buffer.isStuck = true
  const stream = `task-${first._id}`
  const [created] = await log.read(stream, 0, 1)
  const data = decodeJson<ResourceData>(created.data)
  const ids = idSource(0)
  const changed = (n: number): NewEvent => {
    const values = { ...data.values, title: `T${n}`, description: 'x'.repeat(5_000) }
    return { ...created, id: ids.next(), type: TASK.changed, data: encodeJson({ ...data, values }) }
  }
  const count = 1_000
  for (let n = 0; n < count; n += 100)
    await log.append(
      stream,
      Array.from({ length: 100 }, (_, i) => changed(n + i)),
      n,
    )
  await until('all', () => quick.events().length === count + 1)
  t.same(
    quick
      .events()
      .slice(1)
      .map(({ event }) => event.title),
    Array.from({ length: count }, (_, n) => `T${n}`),
    'each change, in order, none conflated',
  )
  t.equal(slow.buffer.closedWith, 4429)
  slow.connection.closed()
  const since = slow.events().at(-1).cursor
  const again = await watch(hub, owner, { since })
  t.equal(again.events().length, count + 1 - slow.events().length, 'the rest comes by since')
})
