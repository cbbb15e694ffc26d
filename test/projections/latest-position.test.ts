import { test } from 'tap'
import { idFrom } from '../../src/kit/commands/ids.ts'
import {
  LATEST_POSITIONS,
  latestPositionCheckpoint,
  type LatestPositionRow,
} from '../../src/features/locations/views.ts'
import { LatestPositions } from '../../projections/latest-position.ts'
import { latestCheckpoint } from '../../projections/latest-restore.ts'
import { locationStream, partitionOf } from '../../src/features/locations/events.ts'
import type { Caller } from '../../src/kernel/caller.ts'
import { type NumberRows, rowChangesOf } from '../../src/kernel/table.ts'
import { defer } from '../../src/kit/consumers/deferred.ts'
import type { FakeClock } from '../support/fake-clock.ts'
import { openTrackers, ORG, PARTITIONS } from '../support/open-trackers.ts'
import { batchOf } from '../support/trace-batches.ts'
import { until } from '../support/service.ts'

const HUB = idFrom('hub', 1)
const TEAM = idFrom('team', 1)
const gateway: Caller = { kind: 'ingestKey', organizationId: ORG, keyId: 'k', autoCreate: true }

const open = async (t: Parameters<typeof openTrackers>[0]) => {
  const world = await openTrackers(t)
  const client = world.connect(gateway)
  let frames = 0
  /** Resolves when the points are durable and handled by the projection. */
  const send = async (...points: object[]) => {
    client.send(points.map((point) => ({ externalId: 'a', lat: 1, lng: 1, ...point })))
    frames++
    await client.until(() => client.acked === frames)
    for (let p = 0; p < PARTITIONS; p++) {
      const head = await world.log.head(locationStream(p))
      await until('it to be so', async () => world.latest.standsAt(p) === head)
    }
  }
  return { ...world, send }
}

test('the newest point stands, whatever comes late, ahead of the clock or twice', async (t) => {
  const { send, positions, clock } = await open(t)
  const now = clock.now()
  const shown = async () =>
    (await positions()).map(({ name, recordedAt, lat }) => [name, Date.parse(recordedAt) - now, lat])
  await send({ recordedAt: now - 5000, lat: 1 }, { recordedAt: now - 3000, lat: 2 }, { recordedAt: now - 4000, lat: 3 })
  t.same(await shown(), [['a', -3000, 2]])
  await send({ recordedAt: now - 3500, lat: 4 })
  t.same(await shown(), [['a', -3000, 2]], 'late')
  await send({ recordedAt: now + 3_600_000, lat: 5 }, { recordedAt: now - 2000, lat: 6 })
  t.same(await shown(), [['a', -2000, 6]], 'ahead of the clock')
  await send({ recordedAt: now + 3_600_000, lat: 7 })
  await send({ recordedAt: now - 2000, lat: 8 })
  t.same(await shown(), [['a', -2000, 6]], 'the first logged wins')
  await send({
    recordedAt: now - 1000,
    lat: 9,
    externalId: 'b',
    speed: 1.5,
    heading: 90,
    battery: 0.5,
    accuracy: 3,
    altitude: -2,
  })
  t.match(
    (await positions()).find(({ name }) => name === 'b'),
    {
      lat: 9,
      speed: 1.5,
      heading: 90,
      battery: 0.5,
      accuracy: 3,
      altitude: -2,
      status: 'online',
      lastSeenAt: new Date(now - 1000).toISOString(),
    },
  )
})

test('a deleted tracker has no position, made anew it has only what came after', async (t) => {
  const { send, positions, clock, call, latest } = await open(t)
  await send({ recordedAt: clock.now() - 1000 })
  const [{ trackerId }] = await positions()
  await call('DELETE', `/tracker/${trackerId}`)
  await until('it to be so', async () => latest.of(trackerId) === undefined)
  t.same(await positions(), [])
  await send({ recordedAt: clock.now() - 9000, lat: 5 })
  await until('it to be so', async () => (await positions()).length === 1)
  t.match(await positions(), [{ trackerId, lat: 5 }], 'older than before, and still its last')
})

test('a commit ends before the next begins, whoever asks for it', async (t) => {
  const { tables, clock } = await open(t)
  let release = (): void => undefined
  const released = new Promise<void>((resume) => (release = resume))
  const order: string[] = []
  const slow = Object.create(tables, {
    commit: {
      value: async (...commit: Parameters<typeof tables.commit>) => {
        order.push('begins')
        await released
        await tables.commit(...commit)
        order.push('ends')
      },
    },
  }) as typeof tables
  const latest = new LatestPositions({
    tables: slow,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => t.fail(String(error)),
  })
  for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)
  const trackerId = idFrom('tracker', 1)
  const take = async (revision: number, latE7: number) => {
    const point = { organizationId: ORG, trackerId, recordedAt: revision + 1, latE7, lngE7: 0, flags: 0 }
    const partition = partitionOf(trackerId, PARTITIONS)
    await latest.handle({ kind: 'points', partition, revision, position: revision, batch: batchOf([point]) }, partition)
  }
  await take(0, 1)
  const first = latest.flushOf(trackerId)
  await until('it to be so', async () => order.length > 0)
  await take(1, 2)
  const others = [latest.flushOf(trackerId), latest.flush()]
  clock.advance(1_000)
  await turns(10)
  release()
  await Promise.all([first, ...others])
  t.same(order, ['begins', 'ends', 'begins', 'ends'])
  t.equal((await tables.get<LatestPositionRow>(LATEST_POSITIONS.name, ORG, trackerId))?.lat, 2)
  await latest.close()
})

test('the first rows of a partition that was taken do not wait for a commit of another one', async (t) => {
  const { tables, clock } = await open(t)
  const gate = defer()
  const slow = Object.create(tables, {
    commit: {
      value: async (...commit: Parameters<typeof tables.commit>) => {
        if (commit[1]?.consumer === latestPositionCheckpoint(0)) await gate.promise
        await tables.commit(...commit)
      },
    },
  }) as typeof tables
  const onFailure = (error: unknown): unknown => t.fail(String(error))
  const latest = new LatestPositions({ tables: slow, clock, partitions: PARTITIONS, onFailure })
  const shown: number[] = []
  const trackers = Array.from({ length: 40 }, (_, i) => idFrom('tracker', i))
  for (const partition of [0, 1]) {
    await latest.load(partition)
    const trackerId = trackers.find((id) => partitionOf(id, PARTITIONS) === partition) as string
    const batch = batchOf([{ organizationId: ORG, trackerId, recordedAt: 1, latE7: 1, lngE7: 0, flags: 0 }])
    await latest.handle({ kind: 'points', partition, revision: 0, position: 0, batch }, partition)
    void latest.shown(partition).then(() => shown.push(partition))
  }
  await until('the rows of the second to be stored', async () => latest.storedThrough(1) === 0 && shown.length > 0)
  t.same(shown, [1], 'the first is not said to be shown')
  gate.resolve()
  await latest.leave(0)
  t.same(shown, [1, 0])
  await latest.close()
})

test('a row that is on its way to the table does not change when its tracker moves', async (t) => {
  const { tables, clock } = await open(t)
  let release = (): void => undefined
  const released = new Promise<void>((resume) => (release = resume))
  const given: NumberRows[] = []
  const slow = Object.create(tables, {
    commit: {
      value: async (...commit: Parameters<typeof tables.commit>) => {
        given.push(...(commit[2] === undefined ? [] : [commit[2]]))
        await released
        await tables.commit(...commit)
      },
    },
  }) as typeof tables
  const latest = new LatestPositions({
    tables: slow,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => t.fail(String(error)),
  })
  for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)
  const trackerId = idFrom('tracker', 2)
  const partition = partitionOf(trackerId, PARTITIONS)
  const move = async (revision: number, latE7: number): Promise<void> => {
    const batch = batchOf([{ organizationId: ORG, trackerId, recordedAt: revision + 1, latE7, lngE7: 0, flags: 0 }])
    await latest.handle({ kind: 'points', partition, revision, position: revision, batch }, partition)
  }
  await move(0, 10)
  const committed = latest.flush()
  await until('it to be so', async () => given.length > 0)
  await move(1, 20)
  t.match(given.flatMap(rowChangesOf), [{ id: trackerId, row: { trackerId, lat: 10, recordedAt: 1 } }])
  t.match(latest.of(trackerId), { lat: 20, recordedAt: 2 })
  release()
  await committed
  await latest.flush()
  t.match(await tables.get<LatestPositionRow>(LATEST_POSITIONS.name, ORG, trackerId), { lat: 20, recordedAt: 2 })
  await latest.close()
})

for (const [what, happens] of [
  ['the process stands still for 20 s', (clock: FakeClock) => clock.stand(20_000)],
  ['the clock is set 2 h forwards', (clock: FakeClock) => clock.set(7_200_000)],
  ['the clock is set 2 h back', (clock: FakeClock) => clock.set(-7_200_000)],
] as const) {
  test(`${what} in the middle of a commit: the next one comes within seconds`, async (t) => {
    const { tables, clock } = await open(t)
    const gate = defer()
    let commits = 0
    let ended = 0
    const slow = Object.create(tables, {
      commit: {
        value: async (...commit: Parameters<typeof tables.commit>) => {
          commits++
          if (commits === 2) await gate.promise
          await tables.commit(...commit)
          ended++
        },
      },
    }) as typeof tables
    const onFailure = (error: unknown): unknown => t.fail(String(error))
    const latest = new LatestPositions({ tables: slow, clock, partitions: PARTITIONS, onFailure })
    for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)
    const trackerId = idFrom('tracker', 3)
    const partition = partitionOf(trackerId, PARTITIONS)
    const move = async (revision: number, latE7: number): Promise<void> => {
      const batch = batchOf([{ organizationId: ORG, trackerId, recordedAt: revision + 1, latE7, lngE7: 0, flags: 0 }])
      await latest.handle({ kind: 'points', partition, revision, position: revision, batch }, partition)
    }
    const stored = async () =>
      (await tables.get<LatestPositionRow>(LATEST_POSITIONS.name, ORG, trackerId))?.lat ?? undefined
    await move(0, 5)
    await latest.flush()
    await move(1, 10)
    clock.advance(1_000)
    await until('it to be so', async () => commits === 2)
    happens(clock)
    await move(2, 20)
    gate.resolve()
    await until('it to be so', async () => ended === 2)
    await turns(10)
    clock.advance(4_000)
    await until('it to be so', async () => (await stored()) === 20)
    t.equal(commits, 3)
    await latest.close()
  })
}

test('a partition is taken without reading rows; those of its trackers are read when points of them come, each once', async (t) => {
  const { tables, clock } = await open(t)
  const read: string[] = []
  const watched = Object.create(tables, {
    scanAll: {
      value: () => {
        throw new Error('the whole table')
      },
    },
    getMany: {
      value: (table: string, scope: string, ids: readonly string[]) => {
        if (table === LATEST_POSITIONS.name) read.push(...ids)
        return tables.getMany(table, scope, ids)
      },
    },
  }) as typeof tables
  const process = () =>
    new LatestPositions({ tables: watched, clock, partitions: PARTITIONS, onFailure: (error) => t.fail(String(error)) })
  const trackers = Array.from({ length: 40 }, (_, i) => idFrom('tracker', i))
  const own = (partition: number) => trackers.filter((id) => partitionOf(id, PARTITIONS) === partition)
  const first = process()
  for (let partition = 0; partition < PARTITIONS; partition++) {
    await first.load(partition)
    const points = own(partition).map((trackerId, i) => ({
      organizationId: i % 2 === 0 ? ORG : idFrom('other'),
      trackerId,
      recordedAt: 1_000 + i,
      latE7: i,
      lngE7: 0,
      flags: 0,
    }))
    await first.handle({ kind: 'points', partition, revision: 0, position: 0, batch: batchOf(points) }, partition)
  }
  await first.flush()
  const [gone] = own(1)
  const deletion = { organizationId: ORG, trackerId: gone, at: 1 }
  await first.handle({ kind: 'trackerDeleted', partition: 1, revision: 1, position: 1, deletion }, 1)
  await first.flush()

  read.splice(0)

  const second = process()
  t.equal(await second.load(1), 1)
  t.same(read, [])
  const older = batchOf(
    own(1).map((trackerId, i) => ({
      organizationId: i % 2 === 0 ? ORG : idFrom('other'),
      trackerId,
      recordedAt: trackerId === gone ? 7 : 900 + i,
      latE7: -i,
      lngE7: 0,
      flags: 0,
    })),
  )
  for (const revision of [2, 3])
    await second.handle({ kind: 'points', partition: 1, revision, position: revision, batch: older }, 1)
  const others = own(1).filter((id) => id !== gone)
  t.same(read.sort(), [...others].sort(), 'a tracker that is gone has no row to read')
  t.match(second.of(gone), { recordedAt: 7 }, 'what came after the deletion is its first point')
  for (const [i, id] of own(1).entries())
    if (i > 0) t.match(second.of(id), { lat: i, recordedAt: 1_000 + i }, 'an older point moves nothing')
})

test('what was read while the partition went to another process is not taken', async (t) => {
  const { tables, clock } = await open(t)
  const gate = defer()
  const slow = Object.create(tables, {
    getMany: {
      value: async (table: string, scope: string, ids: readonly string[]) => {
        await gate.promise
        return tables.getMany(table, scope, ids)
      },
    },
  }) as typeof tables
  const onFailure = (error: unknown): unknown => t.fail(String(error))
  const latest = new LatestPositions({ tables: slow, clock, partitions: PARTITIONS, onFailure })
  await latest.load(0)
  const trackerId = Array.from({ length: 40 }, (_, i) => idFrom('tracker', i)).find(
    (id) => partitionOf(id, PARTITIONS) === 0,
  ) as string
  const batch = batchOf([{ organizationId: ORG, trackerId, recordedAt: 1, latE7: 1, lngE7: 0, flags: 0 }])
  const handling = latest.handle({ kind: 'points', partition: 0, revision: 0, position: 0, batch }, 0)
  await latest.leave(0)
  gate.resolve()
  await t.rejects(Promise.resolve(handling), /is not loaded/)
  t.equal(await tables.get(LATEST_POSITIONS.name, ORG, trackerId), undefined)
})

test('a partition whose rows cannot be committed any more is told to be another owner’s', async (t) => {
  const { tables, clock } = await open(t)
  const latest = new LatestPositions({
    tables,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => t.fail(String(error)),
  })
  const lost: number[] = []
  latest.onLost = (partition) => void lost.push(partition)
  await latest.load(0)
  const trackerId = idFrom('tracker', 'lost')
  const batch = batchOf([{ organizationId: ORG, trackerId, recordedAt: 1, latE7: 1, lngE7: 0, flags: 0 }])
  await latest.handle({ kind: 'points', partition: 0, revision: 0, position: 0, batch }, 0)
  await tables.take('latest-position-0')
  await latest.flush()
  t.same(lost, [0])
  t.equal(await tables.get(LATEST_POSITIONS.name, ORG, trackerId), undefined)
})

test('what was stored when trackers were not kept beside their rows is begun anew', async (t) => {
  const { tables, clock } = await open(t)
  await tables.reset([], 'latest-position-2')
  const { fence } = await tables.take('latest-position-2')
  await tables.commit([], { consumer: 'latest-position-2', from: undefined, at: { 2: 7 }, fence })
  t.equal((await latestCheckpoint(tables, PARTITIONS))[2], undefined)
  const latest = new LatestPositions({
    tables,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => t.fail(String(error)),
  })
  t.equal(await latest.load(2), -1)
  t.equal((await latestCheckpoint(tables, PARTITIONS))[2], -1, 'nothing is truncated for it meanwhile')
})

test('partitions commit beside each other: the answer to each waits for a turn of the event loop', async (t) => {
  const { tables, clock } = await open(t)
  const all = defer()
  let committing = 0
  const held = Object.assign(Object.create(tables), {
    commit: async (...args: Parameters<typeof tables.commit>) => {
      if (++committing >= 2 * PARTITIONS) all.resolve()
      if (committing > PARTITIONS) await all.promise
      return tables.commit(...args)
    },
  }) as typeof tables
  const onFailure = (error: unknown): void => void t.fail(String(error))
  const latest = new LatestPositions({ tables: held, clock, partitions: PARTITIONS, onFailure })
  for (let partition = 0; partition < PARTITIONS; partition++) await latest.load(partition)
  // The first rows of a partition are committed by themselves.
  for (const revision of [0, 1]) {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const trackerId = idFrom('tracker', `beside ${partition}`)
      const batch = batchOf([
        { organizationId: ORG, trackerId, recordedAt: 1 + revision, latE7: 1, lngE7: 0, flags: 0 },
      ])
      await latest.handle({ kind: 'points', partition, revision, position: 0, batch }, partition)
    }
    await latest.flush()
  }
  t.equal(committing, 2 * PARTITIONS)
})

test('rows are committed in the order of their ids, so that those of a commit lie beside each other', async (t) => {
  const { tables, clock } = await open(t)
  const stored: string[][] = []
  const watched = Object.assign(Object.create(tables), {
    commit: (...args: Parameters<typeof tables.commit>) => {
      stored.push([...(args[2]?.ids ?? [])])
      return tables.commit(...args)
    },
  }) as typeof tables
  const onFailure = (error: unknown): void => void t.fail(String(error))
  const latest = new LatestPositions({ tables: watched, clock, partitions: PARTITIONS, onFailure })
  await latest.load(0)
  const ids = Array.from({ length: 1_100 }, (_, i) => idFrom('tracker', `in order ${i}`))
  const points = ids.map((trackerId) => ({
    organizationId: ORG,
    trackerId,
    recordedAt: 1,
    latE7: 1,
    lngE7: 0,
    flags: 0,
  }))
  await latest.handle({ kind: 'points', partition: 0, revision: 0, position: 0, batch: batchOf(points) }, 0)
  await latest.flush()
  const commits = stored.filter((rows) => rows.length > 0)
  t.ok(commits.length > 1, `${commits.length} commits`)
  t.same(commits.flat(), [...ids].sort())
})

test('rows are committed about once a second with the checkpoint; a new process begins there and sees the same', async (t) => {
  const { send, clock, tables, latest, log, feed } = await open(t)
  for (let i = 0; i < 50; i++)
    await send(
      ...Array.from({ length: 20 }, (_, k) => ({ externalId: `v${k}`, recordedAt: clock.now() - 10_000 + i, lat: i })),
    )
  const heads = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => log.head(locationStream(p))))
  const areStored = async (): Promise<boolean[]> => {
    const stored = await latestCheckpoint(tables, PARTITIONS)
    return heads.map((head, p) => stored[p] === head)
  }
  t.notOk((await areStored()).includes(true), 'only the first points are committed yet')
  clock.advance(1_000)
  await until('it to be so', async () => !(await areStored()).includes(false))
  await latest.flush()
  const rows: { [id: string]: LatestPositionRow } = {}
  for await (const { id, row } of tables.scan<LatestPositionRow>(LATEST_POSITIONS.name, ORG)) rows[id] = row
  t.equal(Object.keys(rows).length, 20)
  t.ok(Object.values(rows).every(({ lat }) => lat === 49e7))

  await send({ externalId: 'v1', recordedAt: clock.now() - 1, lat: 77 })
  await feed.close()
  const again = new LatestPositions({
    tables,
    clock,
    partitions: PARTITIONS,
    onFailure: (error) => t.fail(String(error)),
  })
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const at = await again.load(partition)
    t.ok(at >= 0 && at <= (await log.head(`locations-${partition}`)))
  }
  const [id] = Object.keys(rows)
  const late = batchOf([{ organizationId: ORG, trackerId: id, recordedAt: 1, latE7: 1, lngE7: 0, flags: 0 }])
  const partition = partitionOf(id, PARTITIONS)
  await again.handle({ kind: 'points', partition, revision: 1e6, position: 1e6, batch: late }, partition)
  t.match(again.of(id), rows[id])
})

test('live positions are chosen by box, hub, team, status and nearness, and by what the caller sees', async (t) => {
  const { send, positions, put, call, clock } = await open(t)
  await put('hub', HUB, { name: 'Hub', lat: 1, lng: 1 })
  await put('team', TEAM, { name: 'Team', hubId: HUB, userIds: [] })
  for (const [externalId, fields] of [
    ['a', { hubId: HUB }],
    ['b', { hubId: HUB, teamId: TEAM }],
    ['c', {}],
    ['far', {}],
  ] as const)
    await call('POST', '/tracker', { name: externalId, externalId, ...fields })
  const now = clock.now()
  await send(
    { externalId: 'a', recordedAt: now - 1000, lat: 10, lng: 179.9 },
    { externalId: 'b', recordedAt: now - 600_000, lat: 10, lng: -179.9 },
    { externalId: 'c', recordedAt: now - 7_200_000, lat: 10.01, lng: 20 },
    { externalId: 'far', recordedAt: now, lat: 10.5, lng: 20 },
  )
  const names = async (query: string, caller = {}) => (await positions(query, caller)).map(({ name }) => name)
  t.same((await names('')).sort(), ['a', 'b', 'c', 'far'])
  t.same((await names('bbox=179,9,-179,11')).sort(), ['a', 'b'], 'a box across the antimeridian')
  t.same(await names('bbox=19,9,21,10.1'), ['c'])
  t.same((await names('bbox=21,9,19,11')).sort(), ['a', 'b'], 'all but two degrees of the way around')
  t.same((await names(`hubId=${HUB}`)).sort(), ['a', 'b'])
  t.same(await names(`teamId=${TEAM}`), ['b'])
  t.same(
    [await names('status=online'), await names('status=stale'), await names('status=offline')].map((list) =>
      list.sort(),
    ),
    [['a', 'far'], ['b'], ['c']],
  )
  t.same(await names('near=10,20&radius=2000'), ['c'])
  t.same(await names('near=10,20&limit=2'), ['c', 'far'])
  t.same((await names('', { hubIds: [HUB] })).sort(), ['a', 'b'])
  t.same(await names('', { hubIds: [] }), [])
  t.same(await names('', { organizationId: idFrom('organization', 'b') }), [])
  for (const query of ['bbox=1,2,3', 'bbox=1,2,x,4', 'bbox=1,5,2,4', 'near=1', 'near=91,0', 'radius=5'])
    await t.rejects(positions(query), { code: 'invalid' }, query)
})

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resume) => setImmediate(resume))
}
