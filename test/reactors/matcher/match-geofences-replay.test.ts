import { test, type Test } from 'tap'
import type { GeofenceMatcher } from '../../../src/reactors/matcher/match-geofences.ts'
import { MatcherWorld } from '../../support/matcher-world.ts'
import { randomSteps, type Step } from '../../support/random-fleet.ts'
import { slowTransitions } from '../../support/slow-matcher.ts'
import { folderOf } from '../../support/folder-of.ts'
import { seeded } from '../../support/random.ts'

/** Writes what happens into some partitions, the same into each. */
const writeSteps = async (
  world: MatcherWorld,
  steps: readonly Step[],
  partitions: readonly number[],
): Promise<void> => {
  for (const step of steps) {
    if (step.kind === 'fences') {
      const groups: Awaited<ReturnType<MatcherWorld['putGroup']>>[] = []
      const geofences: Awaited<ReturnType<MatcherWorld['putFence']>>[] = []
      for (const { geofenceGroupId, rules } of step.groups) groups.push(await world.putGroup(geofenceGroupId, rules))
      for (const { geofenceId, state } of step.fences) geofences.push(await world.putFence(geofenceId, state))
      const sourcePosition = Math.max(...[...groups, ...geofences].map(({ position }) => position))
      await Promise.all(
        partitions.map((partition) => world.announce(partition, { at: step.at, sourcePosition, geofences, groups })),
      )
    } else if (step.kind === 'points') {
      await Promise.all(partitions.map((partition) => world.points(partition, step.batch)))
    } else await Promise.all(partitions.map((partition) => world.deleteTracker(partition, step.trackerId, step.at)))
  }
}

const lineOf = ({
  step,
  trackerId,
  geofenceId,
  type,
  at,
  cause,
}: {
  step: number
  trackerId: string
  geofenceId: string
  type: string
  at: number
  cause: string
}): string => [step, trackerId, geofenceId, at, type, cause].join(' ')

for (const [seed, size] of [
  [1, { steps: 150 }],
  [2, { steps: 100, trackers: 50 }],
  [3, { steps: 100, trackers: 120 }],
] as const) {
  test(`seed ${seed}: decides what the plainest way decides, and the same through crashes at any moment`, async (t) => {
    const world = await MatcherWorld.open(folderOf(t))
    t.teardown(() => world.close())
    const steps = randomSteps(seed, size)
    // Partition 1 is decided in one go, partition 0 with crashes.
    await writeSteps(world, steps, [0, 1])
    const calm = world.matcher()
    await world.run(calm, 1)
    await calm.close()
    const expected = await world.decisions(1)

    const made = (await world.decisions(1)).flatMap((decision) =>
      decision.kind === 'transition' ? [lineOf({ ...decision, step: decision.sourceRevision })] : [],
    )
    const slow = slowTransitions(steps).map(lineOf)
    t.ok(slow.length > 200, `${slow.length} transitions`)
    t.strictSame([...made].sort(), [...slow].sort(), 'as the plainest way')
    assertAlternating(t, expected)

    await runWithCrashes(world, 0, steps.length, seeded(seed))
    t.strictSame(await world.decisions(0), expected, 'each once, in the same order')
  })
}

const assertAlternating = (t: Test, decisions: Awaited<ReturnType<MatcherWorld['decisions']>>): void => {
  const last = new Map<string, string>()
  for (const decision of decisions) {
    if (decision.kind !== 'transition') continue
    const key = `${decision.trackerId} ${decision.geofenceId}`
    if ((last.get(key) ?? 'leave') === decision.type) t.fail(`${key} has two of ${decision.type}`)
    last.set(key, decision.type)
  }
}

/** Runs to random places, stores or not, sometimes half, and drops the matcher as it is; a new one goes on. */
const runWithCrashes = async (
  world: MatcherWorld,
  partition: number,
  entries: number,
  random: () => number,
): Promise<void> => {
  const { commit } = world.tables
  for (let through = 0; through < entries; ) {
    through += Math.floor(random() * 12)
    const matcher = world.matcher()
    await world.run(matcher, partition, through)
    const what = random()
    if (what < 0.3) await matcher.save(partition)
    else if (what < 0.6) await saveHalf(world, matcher, partition, random)
    await matcher.drop(partition)
    world.tables.commit = commit
  }
  const last = world.matcher()
  await world.run(last, partition)
  await last.close()
}

/** The process dies between two commits: of the pages only some are stored, of the root none. */
const saveHalf = async (
  world: MatcherWorld,
  matcher: GeofenceMatcher,
  partition: number,
  random: () => number,
): Promise<void> => {
  const commit = world.tables.commit.bind(world.tables)
  world.tables.commit = async (changes, checkpoint) => {
    if (checkpoint !== undefined) throw new Error('killed')
    await commit(changes.filter(() => random() < 0.5))
  }
  await matcher.save(partition).catch(() => undefined)
}
