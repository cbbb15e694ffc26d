import { test } from 'tap'
import { transitionStream } from '../../src/features/transitions/events.ts'
import { writeFleet } from './fleet.ts'
import { runHeld } from './held-time.ts'
import { Host, PARTITIONS } from './host.ts'
import { worldOf } from './simulate.ts'
import { Timeline } from './timeline.ts'
import type { Trouble } from './wire.ts'

/** Every question and every answer takes a millisecond, so that time counts the answers that wait for each other. */
const EVEN: Trouble = { lost: 0, slow: 1, slowMsMax: 1 }
const ANSWER_MS = 2
/** A look that no other process asks for comes after 250 ms. */
const ANSWERS_MAX = 15
const SETTLED_MS = 12_000

test('a process that ends hands over in few answers, whenever the heir has looked last', async (t) => {
  for (const [i, askedMs] of [0, 60, 120, 180].entries()) {
    const timeline = new Timeline(i + 1)
    const world = worldOf(timeline)
    const heads = (): number[] =>
      Array.from({ length: PARTITIONS }, (_, partition) => world.log.head(transitionStream(partition)))
    const hosts = [0, 1].map((node) => new Host(world, `node-${node}`, 0))
    for (const { log, tables, history } of [world.troubles, ...hosts.map(({ troubles }) => troubles)])
      for (const trouble of [log, tables, history]) Object.assign(trouble, EVEN)
    let before: number[] = []
    let answers = 0
    let isOver = false
    const watch = (endedMs: number): void => {
      const taken = heads().filter((head, partition) => head > before[partition]).length
      answers = (timeline.nowMs - endedMs) / ANSWER_MS
      isOver = taken === PARTITIONS / 2 || answers > 10 * ANSWERS_MAX
      if (!isOver) timeline.after(1, () => watch(endedMs))
    }
    const begin = (): void => {
      writeFleet(world.log)
      for (const host of hosts) void host.open()
      timeline.after(SETTLED_MS + askedMs, () => {
        before = heads()
        void hosts[1].close()
        watch(timeline.nowMs)
      })
    }
    await runHeld(timeline, begin, () => isOver)
    t.ok(answers <= ANSWERS_MAX, `${answers} answers until the heir has begun with the partitions`)
  }
})
