import { test } from 'tap'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { advanceUntil, entry, openHook, openWorld, owner, trackerId } from './world.ts'

const southern: UserCaller = { ...owner, userId: 'u2', hubIds: ['south'], roleKey: undefined }

const openHubs = async (t: Parameters<typeof openHook>[0]) => {
  const own = await openHook(t, () => 500)
  const world = await openWorld(t)
  world.known.hubIds.set(trackerId(1), ['north'])
  world.known.hubIds.set(trackerId(2), ['south'])
  world.known.editors.set(southern.userId, southern)
  const { _id } = await world.webhook(own)
  const ended = async () => {
    const runs = await world.runs()
    return runs.length === 2 && runs.every(({ status }) => status !== 'pending')
  }
  const outcomes = async () =>
    Object.fromEntries((await world.runs()).map((run) => [run.subjectId, run.reason ?? run.status]))
  return { own, world, _id, ended, outcomes }
}

test('who takes an automation over gets no run that waits of trackers of other hubs', async (t) => {
  const { world, _id, ended, outcomes } = await openHubs(t)
  await world.decide([entry(world.clock.now(), 1), entry(world.clock.now(), 2)])
  await world.settled()
  const other = await openHook(t)
  const body = { automationDetails: { url: other.url } }
  t.equal((await world.call('PATCH', `/automation/${_id}`, { caller: southern, body })).status, 200)
  await advanceUntil(world, 1_000, ended)
  t.same(
    other.seen.map((seen) => seen.body.data.trackerId),
    [trackerId(2)],
  )
  t.same(await outcomes(), { [trackerId(1)]: 'hidden', [trackerId(2)]: 'succeeded' })
  t.equal(world.counted.skipped, 1)

  await world.call('PATCH', `/automation/${_id}`, { caller: owner, body: { name: 'Back' } })
  const hidden = (await world.runs()).find(({ reason }) => reason === 'hidden')?._id
  t.equal((await world.call('POST', `/automation-log/${hidden}/retry`, { caller: owner })).status, 200)
  await advanceUntil(world, 1_000, () => other.seen.length === 2)
  t.equal(other.seen[1].body.data.trackerId, trackerId(1), 'asked for again, it is looked at again')
})

for (const [what, change] of [
  ['is gone or disabled', undefined],
  ['lost the permission', { ...owner, permissions: new Set(['edit/automation']) }],
  ['lost the hubs', { ...owner, hubIds: [] }],
] as const)
  test(`nothing goes out any more when the last editor ${what}`, async (t) => {
    const { own, world, ended, outcomes } = await openHubs(t)
    await world.decide([entry(world.clock.now(), 1), entry(world.clock.now(), 2)])
    await world.settled()
    t.equal(own.seen.length, 2)
    if (change === undefined) world.known.editors.delete(owner.userId)
    else world.known.editors.set(owner.userId, change)
    await advanceUntil(world, 1_000, ended)
    t.same(await outcomes(), { [trackerId(1)]: 'hidden', [trackerId(2)]: 'hidden' })
    t.equal(own.seen.length, 2)
  })

test('nor when the organization has left the rollout', async (t) => {
  const { own, world, ended } = await openHubs(t)
  await world.decide([entry(world.clock.now(), 1), entry(world.clock.now(), 2)])
  await world.settled()
  world.known.isRolledOut = false
  await advanceUntil(world, 1_000, ended)
  t.equal(own.seen.length, 2)
})

test('who may not edit users sees no contact of the driver', async (t) => {
  const { own, world } = await openHubs(t)
  own.answer = () => 204
  await world.decide([entry(world.clock.now(), 1)])
  await world.settled()
  world.known.editors.set(owner.userId, { ...owner, permissions: new Set([...owner.permissions, 'edit/user']) })
  await world.decide([entry(world.clock.now(), 1)])
  await world.settled()
  t.same(
    own.seen.map(({ body }) => body.data.user),
    [
      { _id: 'driver', name: 'Driver' },
      { _id: 'driver', name: 'Driver', email: 'driver@example.com' },
    ],
  )
})
