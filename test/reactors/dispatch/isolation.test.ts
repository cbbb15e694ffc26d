import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import type { Action, Actions, Outcome } from '../../../src/reactors/dispatch/actions/action.ts'
import { TASK } from '../../../src/features/tasks/views.ts'
import { countOf } from '../../../src/reactors/dispatch/backlog.ts'
import { until } from '../../support/service.ts'
import { actionsFor, openOffice } from './open-office.ts'
import { entry, GROUPS, openHook, openWorld, ORG, owner } from './world.ts'

test('a receiver that hangs delays no other automation, not even at the same address', async (t) => {
  const hook = await openHook(t, ({ body }) => (body.data.automationId === slow ? undefined : 200))
  const world = await openWorld(t)
  const slow = (await world.webhook(hook))._id
  await world.webhook(hook)
  const now = world.clock.now()
  for (let i = 0; i < 10; i++) await world.decide(Array.from({ length: 100 }, (_, k) => entry(now, i * 100 + k)))
  await until('all of the fast one', () => world.counted.succeeded === 1_000)
  t.ok(hook.seen.filter(({ body }) => body.data.automationId === slow).length <= 8, 'few calls hang')
  await world.end(true)
})

test('receivers that hang, however many, hold up nothing that is done here', async (t) => {
  const office = await openOffice(t)
  const { automate, ask, begin, ended, flow, hubId } = office
  const answers: (() => void)[] = []
  const hang = (): Promise<Outcome> => new Promise((answer) => answers.push(() => answer({ kind: 'done' })))
  let isHeld = false
  let writes = 0
  const append: EventLog['append'] = async (stream, events, expected) => {
    if (
      isHeld &&
      events.some(({ type, metadata }) => type === TASK.changed && metadata.actor?.startsWith('automation:'))
    ) {
      writes++
      await until('another write at the same time', () => writes > 1)
    }
    return office.log.append(stream, events, expected)
  }
  const log: EventLog = Object.assign(Object.create(office.log), { append })
  const kept = actionsFor({ ...office, log })
  const actions: Actions = { ...kept, webhook: { ...(kept.webhook as Action), attempt: hang } }
  const dispatcher = await begin(log, {}, { actions, outsideMax: 3 })
  const rules = { fields: { 'task.flowId': flow._id } }
  const hook = { url: 'https://example.com/hook', headers: [] }
  await automate({ event: 'onTaskCreated', automationType: 'webhook', automationDetails: hook, rules })
  const make = (n: number) => ask('POST', '/task', { flowId: flow._id, hubId, title: `Task ${n}` })
  for (let n = 0; n < 6; n++) await make(n)
  await until('all places to be taken', () => answers.length === 3)
  const { _id } = await automate({
    ...{ event: 'onTaskCreated', automationType: 'updateTask', rules },
    automationDetails: { components: { count: 7 } },
  })
  await make(6)
  await ended(_id, 1)
  isHeld = true
  await Promise.all(Array.from({ length: 12 }, (_, n) => make(7 + n)))
  await ended(_id, 13)
  t.equal(writes, 12, 'several at once')
  t.equal(answers.length, 3, 'while they hang')
  const answerAll = (): void => {
    for (const answer of answers.splice(0)) answer()
  }
  const closing = dispatcher.close()
  const rest = setInterval(answerAll, 5)
  await closing
  clearInterval(rest)
})

test('more than may wait are skipped, and memory holds a part of those that wait', async (t) => {
  const hook = await openHook(t, () => 500)
  const world = await openWorld(t, { waitingMax: 1_500 })
  const { _id } = await world.webhook(hook)
  const now = world.clock.now()
  for (let i = 0; i < 4; i++) await world.decide(Array.from({ length: 500 }, (_, k) => entry(now, i * 500 + k)))
  await until('all is looked at', async () => (await world.runs()).length === 2_000)
  const waiting = (): number =>
    world.dispatcher
      .partition(0)
      .pending.all()
      .reduce((sum, one) => sum + countOf(one), 0)
  t.equal(waiting(), 1_500)
  t.equal(
    (await world.runs()).filter(({ status, reason }) => status === 'skipped' && reason === 'overflow').length,
    500,
  )
  t.ok(world.dispatcher.partition(0).pending.all()[0].order.size <= 500 + 8)
  await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { isActive: false } })
  await until('the rest is skipped', () => waiting() === 0)
  await until(
    'their log',
    async () => (await world.runs()).filter(({ reason }) => reason === 'deactivated').length === 1_500,
  )
})

test('an automation is only found under its group', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const other = '0190f3a2-0000-7000-8000-0000000000a2'
  await world.tables.commit([{ table: GROUPS, scope: ORG, id: other, row: { _id: other } }])
  await world.webhook(hook, { rules: { fields: { geofenceGroupId: other } } })
  await world.webhook(hook, {
    rules: { fields: { geofenceGroupId: '0190f3a2-0000-7000-8000-0000000000a1', 'point.speed': { minimum: 10 } } },
  })
  const now = world.clock.now()
  await world.decide([
    entry(now, 1, { point: { recordedAt: now, lat: 1, lng: 1, speed: 5 } }),
    entry(now, 2, { point: { recordedAt: now, lat: 1, lng: 1, speed: 15 } }),
  ])
  await until('one', () => world.counted.succeeded === 1)
  t.equal((await world.runs()).length, 1)
  t.equal(hook.seen[0].body.data.point.speed, 15)
})
