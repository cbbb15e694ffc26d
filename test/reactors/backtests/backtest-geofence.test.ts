import { test } from 'tap'
import { HAS_ACCURACY } from '../../../src/features/locations/events.ts'
import { writeUuid } from '../../../src/engines/clickhouse-sql/native-block.ts'
import type { PointRows } from '../../../src/features/locations/history/point-rows.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import { type Backtest, backtest } from '../../../src/reactors/backtests/backtest-geofence.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf, type PlainPoint } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'
import { seeded } from '../../support/random.ts'

const SHAPE = {
  type: 'Polygon' as const,
  coordinates: [ringOf(0, 0, 0.01, 0.01)],
}

const walks = (): PlainPoint[] => {
  const random = seeded(7)
  return Array.from({ length: 20 }, (_, tracker) => {
    let [lat, lng] = [50_000, 50_000]
    return Array.from({ length: 300 }, (_, i) => {
      lat += Math.round((random() - 0.5) * 30_000)
      lng += Math.round((random() - 0.5) * 30_000)
      return {
        organizationId: ORG,
        trackerId: uuidOf(`tracker ${tracker}`),
        recordedAt: i * 10_000,
        latE7: lat,
        lngE7: lng,
        flags: HAS_ACCURACY,
        accuracyCm: Math.round(random() * 4_000),
      }
    })
  }).flat()
}

const rowsOf = (points: readonly PlainPoint[]): PointRows => {
  const batch = batchOf(points)
  const tracker = new Uint8Array(batch.count * 16)
  for (let i = 0; i < batch.count; i++) writeUuid(batch.trackers[batch.tracker[i]].trackerId, tracker, i * 16)
  return { ...batch, tracker, attributes: new Array(batch.count).fill('') }
}

test('a back-test makes the transitions that the matcher makes, and leaves out what was before', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const rules = { maxAccuracy: 30, debounce: { fixes: 2 } }
  const group = await world.putGroup('group', rules)
  const fence = await world.putFence(uuidOf('fence'), { shape: SHAPE, geofenceGroupId: 'group' })
  await world.announce(0, { sourcePosition: fence.position, geofences: [fence], groups: [group] })
  const points = walks()
  for (let i = 0; i < 300; i += 50)
    await world.points(
      0,
      batchOf(points.filter(({ recordedAt }) => recordedAt >= i * 10_000 && recordedAt < (i + 50) * 10_000)),
    )
  const matcher = world.matcher()
  await world.run(matcher, 0)
  await matcher.close()

  const from = 1_000_000
  const question = {
    organizationId: ORG,
    geofenceId: uuidOf('fence'),
    geofenceGroupId: 'group',
    shape: SHAPE,
    rules,
    from: 0,
  }
  async function* history(): AsyncGenerator<PointRows> {
    const half = points.findIndex(({ trackerId }) => trackerId === uuidOf('tracker 10'))
    yield rowsOf(points.slice(0, half))
    yield rowsOf(points.slice(half))
  }
  const lineOf = ({ trackerId, type, at }: { trackerId: string; type: string; at: number }): string =>
    `${trackerId} ${at} ${type}`
  const live = (await world.transitions(0)).map(lineOf).sort()
  const found = async (asked: Backtest): Promise<Transition[]> => {
    const made: Transition[] = []
    for await (const { transitions } of backtest(asked, history())) made.push(...transitions)
    return made
  }
  const all = await found(question)
  t.ok(live.length > 50, `${live.length} transitions`)
  t.strictSame(all.map(lineOf).sort(), live)
  t.equal(new Set(all.map(({ _id }) => _id)).size, all.length, 'each has an id of its own')
  const later = await found({ ...question, from })
  t.strictSame(
    later.map(lineOf).sort(),
    live.filter((line) => Number(line.split(' ')[1]) >= from),
  )
})
