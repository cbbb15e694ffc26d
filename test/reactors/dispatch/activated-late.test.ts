import { test } from 'tap'
import { automations } from '../../../projections/automations.ts'
import { RUNS_OWED, runsStream } from '../../../src/features/automations/events.ts'
import { runProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'
import { folderOf } from '../../support/folder-of.ts'
import { entry, openHook, openWorld, owner, webhookBody } from './world.ts'

type World = Awaited<ReturnType<typeof openWorld>>

const positionOf = async ({ log }: World): Promise<number> => log.headPosition()

/** Decides something, and waits for the dispatcher to have looked at it. */
const lookedAt = async (world: World, ...decisions: Parameters<World['decide']>[0]): Promise<void> => {
  await world.decide(decisions)
  const head = await world.log.head('transitions-0')
  await until('the dispatcher', () => world.dispatcher.partition(0).pending.progress.source >= head)
}

/** Asks for an automation while the table of automations stands still: it is in the log, and nobody can read it. */
const activate = async (world: World, url: string): Promise<{ answered: Promise<unknown> }> => {
  const before = await positionOf(world)
  const answered = world.call('POST', '/automation', { caller: owner, body: webhookBody(url) })
  await until('the automation in the log', async () => (await positionOf(world)) > before)
  return { answered }
}

test('an automation counts from its place in the log on, though its table has it later', async (t) => {
  const hook = await openHook(t)
  const world = await openWorld(t)
  const at = world.clock.now()
  await lookedAt(world, entry(at, 1))
  await world.runner.close()
  const { answered } = await activate(world, hook.url)
  await lookedAt(world, entry(at + 1, 1))
  await lookedAt(world, entry(at + 2, 1), entry(at + 3, 2))
  t.equal(hook.seen.length, 0)
  const late = await runProjections(world, [automations])
  t.teardown(() => late.close())
  await answered
  await lookedAt(world, entry(at + 4, 1))
  await until('four deliveries', () => world.counted.succeeded === 4)
  const timesOf = (id: string) =>
    hook.seen
      .filter(({ body }) => body.data.trackerId === id)
      .sort((a, b) => a.body.data.sequence - b.body.data.sequence)
      .map(({ body }) => Date.parse(body.data.point.recordedAt) - at)
  const trackers = [...new Set(hook.seen.map(({ body }) => body.data.trackerId as string))]
  t.same(trackers.map(timesOf).sort(), [[1, 2, 4], [3]], 'in their order, and nothing from before')
  t.equal(hook.ids().length, 4)
})

test('what was owed so before a crash is not owed again', async (t) => {
  const folder = folderOf(t)
  const hook = await openHook(t)
  const first = await openWorld(t, { folder })
  await lookedAt(first, entry(first.clock.now(), 1))
  await first.runner.close()
  const { answered } = await activate(first, hook.url)
  await lookedAt(first, entry(first.clock.now() + 1, 1))
  const late = await runProjections(first, [automations])
  await answered
  await until('the delivery', () => first.counted.succeeded === 1)
  await late.close()
  await first.end(true)
  const second = await openWorld(t, { folder, clock: first.clock })
  await lookedAt(second, entry(second.clock.now() + 2, 1))
  await until('only the new one', () => second.counted.succeeded === 1)
  const owed = (await second.log.read(runsStream(0), 0, 100)).filter(({ type }) => type === RUNS_OWED)
  t.equal(owed.length, 2)
  t.equal(hook.seen.length, 2)
})
