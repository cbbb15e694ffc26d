import { test } from 'tap'
import { LATEST_POSITION } from '../../projections/latest-position.ts'
import { partitionOf } from '../../src/features/locations/events.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { trackerIdOf } from '../../src/features/trackers/declaration.ts'
import { transitionStream } from '../../src/features/transitions/events.ts'
import { CALLER } from './clients.ts'
import { ORGANIZATION, positionOf, writeFleet } from './fleet.ts'
import { runHeld } from './held-time.ts'
import { Host, PARTITIONS, type World } from './host.ts'
import { worldOf } from './simulate.ts'
import { BEGUN_MS, Timeline } from './timeline.ts'
import type { Trouble } from './wire.ts'

/** Every question and every answer takes a millisecond, so that time counts the answers that wait for each other. */
const EVEN: Trouble = { lost: 0, slow: 1, slowMsMax: 1 }
const ANSWER_MS = 2
/** A look that no other process asks for comes after 250 ms. */
const ANSWERS_MAX = 15
/** Rows that wait until those of other partitions are due come 200 ms later, or a second where there are many. */
const SHOWN_ANSWERS_MAX = 20
const SETTLED_MS = 12_000
const OPEN_ANSWERS_MAX = 16
/** Time from points before the end to those after it: rows of the former are stored by then. */
const PAUSE_MS = 400
const TRACKERS = Array.from({ length: 8 }, (_, i) => `T${i}`)

interface Pair {
  world: World
  /** The second one ends. */
  hosts: Host[]
}

/** Ends one of two processes; answers in how many answers something is so. */
const answersUntil = async (
  seed: number,
  askedMs: number,
  ends: (pair: Pair) => () => boolean,
  before: (pair: Pair) => void = () => undefined,
): Promise<number> => {
  const timeline = new Timeline(seed)
  const world = worldOf(timeline)
  const hosts = [0, 1].map((node) => new Host(world, `node-${node}`, 0))
  const pair = { world, hosts }
  for (const { log, tables, history } of [world.troubles, ...hosts.map(({ troubles }) => troubles)])
    for (const trouble of [log, tables, history]) Object.assign(trouble, EVEN)
  let answers = 0
  let isOver = false
  const watch = (endedMs: number, isSo: () => boolean): void => {
    answers = (timeline.nowMs - endedMs) / ANSWER_MS
    isOver = isSo() || answers > 50 * SHOWN_ANSWERS_MAX
    if (!isOver) timeline.after(1, () => watch(endedMs, isSo))
  }
  const begin = (): void => {
    writeFleet(world.log)
    for (const host of hosts) void host.open()
    timeline.after(SETTLED_MS + askedMs - PAUSE_MS, () => before(pair))
    timeline.after(SETTLED_MS + askedMs, () => {
      const isSo = ends(pair)
      void hosts[1].close()
      watch(timeline.nowMs, isSo)
    })
  }
  await runHeld(timeline, begin, () => isOver)
  return answers
}

const begunElsewhere = ({ world: { log } }: Pair): (() => boolean) => {
  const heads = (): number[] =>
    Array.from({ length: PARTITIONS }, (_, partition) => log.head(transitionStream(partition)))
  const before = heads()
  return () => heads().filter((head, partition) => head > before[partition]).length === PARTITIONS / 2
}

/** Sends a point of each tracker through the process that stays; the other one has some of their partitions. */
const sent = ({ world: { timeline, rows }, hosts: [heir, ending] }: Pair): (() => boolean) => {
  const recordedAt = BEGUN_MS + Math.floor(timeline.nowMs)
  const { owners } = rows.get('leases', 'leases', 'held') as { owners: { [name: string]: string } }
  const left = TRACKERS.map((name) => trackerIdOf(ORGANIZATION, name)).filter(
    (id) => owners[`${LATEST_POSITION}-${partitionOf(id, PARTITIONS)}`] === ending.lifeId,
  )
  const points = TRACKERS.map((externalId) => ({ externalId, recordedAt, ...positionOf(1) }))
  void heir.door!.store.store(CALLER, points)
  return () =>
    left.length > 0 && left.every((id) => rows.get(LATEST_POSITIONS.name, ORGANIZATION, id)?.recordedAt === recordedAt)
}

test('a process that ends hands over in few answers, whenever the heir has looked last', async (t) => {
  for (const [i, askedMs] of [0, 60, 120, 180].entries()) {
    const answers = await answersUntil(i + 1, askedMs, begunElsewhere)
    t.ok(answers <= ANSWERS_MAX, `${answers} answers until the heir has begun with the partitions`)
  }
})

test('the heir shows points that come during the hand-over in few answers', async (t) => {
  for (const [i, askedMs] of [0, 60, 120, 180].entries()) {
    const answers = await answersUntil(i + 1, askedMs, sent, sent)
    t.ok(answers <= SHOWN_ANSWERS_MAX, `${answers} answers until all points are shown`)
  }
})

test('a process that starts beside another has all its roles in few answers', async (t) => {
  const timeline = new Timeline(1)
  const world = worldOf(timeline)
  const [first, second] = [0, 1].map((node) => new Host(world, `node-${node}`, 0))
  for (const { log, tables, history } of [world.troubles, first.troubles, second.troubles])
    for (const trouble of [log, tables, history]) Object.assign(trouble, EVEN)
  let answers = 0
  const begin = (): void => {
    writeFleet(world.log)
    void first.open()
    timeline.after(SETTLED_MS, () => {
      const startedMs = timeline.nowMs
      void second.open().then(() => (answers = (timeline.nowMs - startedMs) / ANSWER_MS))
    })
  }
  await runHeld(timeline, begin, () => answers > 0 || timeline.nowMs > 2 * SETTLED_MS)
  t.ok(answers > 0 && answers <= OPEN_ANSWERS_MAX, `${answers} answers until its roles are open`)
})
