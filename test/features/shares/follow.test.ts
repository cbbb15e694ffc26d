import { type Test, test } from 'tap'
import { ORGANIZATIONS_TABLE } from '../../../src/features/identity/views.ts'
import type { TravelTimes } from '../../../src/engines/travel-times.ts'
import { LATEST_POSITIONS } from '../../../src/features/locations/views.ts'
import { drawing } from '../../../src/features/shares/drawing.ts'
import { findShare, followedBy } from '../../../src/features/shares/follow.ts'
import { Roads } from '../../../src/features/shares/roads.ts'
import { endedPage, followPage } from '../../../src/features/shares/page.ts'
import { speedAlong, type TrackPoint, Tracks } from '../../../src/features/shares/track.ts'
import { makeShareToken, SHARE_TOKENS, SHARES } from '../../../src/features/shares/views.ts'
import { languageOf } from '../../../src/features/shares/words.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { NO_ORGANIZATION } from '../../../src/kernel/table.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'

const ORGANIZATION = '0190f3a2-7c00-7a11-8b22-aabbccddeeff'
const START = Date.parse('2026-11-20T08:00:00.000Z')
const MINUTE_MS = 60_000
const at = (minutes: number): string => new Date(START + minutes * MINUTE_MS).toISOString()

const open = async (t: Test) => {
  const history = { points: [] as readonly TrackPoint[], fails: false }
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const { tables, keyring } = services
  const equality = { tasks: [], routingResults: [], trackers: ['userId', 'vehicleId'], vehicles: ['userId'] }
  for (const table of [
    SHARE_TOKENS,
    LATEST_POSITIONS,
    { name: SHARES, version: 1 },
    { name: ORGANIZATIONS_TABLE, version: 1 },
  ])
    await tables.declare(table)
  for (const [name, fields] of Object.entries(equality)) await tables.declare({ name, version: 1, equality: fields })
  const put = (table: string, id: string, row: object, scope = ORGANIZATION) =>
    tables.commit([{ table, scope, id, row: { _id: id, organizationId: scope, ...row } }])
  await put(ORGANIZATIONS_TABLE, ORGANIZATION, { name: 'Couriers' })
  const { token, tokenHash } = makeShareToken(keyring, 'seed')
  await put(SHARE_TOKENS.name, tokenHash, { organizationId: ORGANIZATION, shareId: 's' }, NO_ORGANIZATION)
  const shared = (row: object) => put(SHARES, 's', { createdAt: at(0), showTrail: true, ...row })
  const task = (row: object) => put('tasks', 't', { title: 'T', state: 'assigned', updatedAt: at(0), ...row })
  const position = (trackerId: string, minutes: number, lat: number) =>
    put(LATEST_POSITIONS.name, trackerId, {
      ...{ trackerId, recordedAt: START + minutes * MINUTE_MS, loggedAt: 0, lat: lat * 1e7, lng: 21e7, flags: 0 },
    })
  const tracks = {
    read: async () => {
      if (history.fails) throw new Failure('engine_down')
      return history.points
    },
  } as unknown as Tracks
  const follow = async (minutes: number, roads?: Roads) => {
    const given = { tables, keyring, tracks, ...(roads && { roads }) }
    const found = await findShare(given, token, START + minutes * MINUTE_MS)
    return found && followedBy(given, found, START + minutes * MINUTE_MS)
  }
  return { history, tables, put, shared, task, position, follow }
}

test('a share of a task ends an hour after it is over, at its own end, or with the task', async (t) => {
  const { shared, task, follow, tables } = await open(t)
  await shared({ taskId: 't' })
  t.equal(await follow(0), undefined, 'there is no task')
  await task({})
  t.match(await follow(0), { task: { title: 'T', state: 'assigned' } })
  t.ok(await follow(60 * 24 * 89))
  t.equal(await follow(60 * 24 * 90), undefined, 'nobody follows for ever')
  for (const [state, member] of [
    ['finished', 'finishedAt'],
    ['cancelled', 'cancelledAt'],
  ]) {
    await task({ state, [member]: at(30), updatedAt: at(31) })
    t.ok(await follow(89), state)
    t.equal(await follow(90), undefined)
    await task({ state, [member]: at(600), updatedAt: at(31) })
    t.equal(await follow(91), undefined, 'whatever time the device said')
  }
  await task({ state: 'new', updatedAt: at(200) })
  t.ok(await follow(300), 'a task that is done again is followed again')
  await shared({ taskId: 't', expiresAt: at(250) })
  t.ok(await follow(249))
  t.equal(await follow(250), undefined)
  await tables.commit([{ table: SHARES, scope: ORGANIZATION, id: 's', row: null }])
  t.equal(await follow(0), undefined, 'deleted')
})

test('a share of a tracker ends with it, also where it is made anew under its externalId', async (t) => {
  const { shared, put, position, follow } = await open(t)
  await shared({ trackerId: 'bus', expiresAt: at(600) })
  t.equal(await follow(10), undefined, 'there is no tracker')
  await put('trackers', 'bus', { createdAt: at(-5) })
  await position('bus', 5, 52)
  t.match(await follow(10), { position: { lat: 52 } })
  await put('trackers', 'bus', { createdAt: at(1) })
  t.ok(await follow(10), 'clocks differ')
  await put('trackers', 'bus', { createdAt: at(7) })
  t.equal(await follow(10), undefined)
})

test('a position is that of whoever started the task, while it is in progress and from its start on', async (t) => {
  const { shared, task, position, put, follow } = await open(t)
  await shared({ taskId: 't' })
  await put('trackers', 'phone', { userId: 'ada' })
  await put('trackers', 'van', { vehicleId: 'v' })
  await put('trackers', 'other', { userId: 'bob' })
  await put('vehicles', 'v', { userId: 'ada' })
  await position('phone', 5, 52)
  await position('other', 9, 10)
  const started = { state: 'inProgress', startedAt: at(6), startedBy: 'ada', assigneeIds: ['ada', 'bob'] }
  await task(started)
  t.equal((await follow(10))?.position, undefined, 'from before the start')
  await position('phone', 7, 53)
  t.same((await follow(10))?.position, { lat: 53, lng: 21, recordedAt: at(7) })
  await position('van', 8, 54)
  t.equal((await follow(10))?.position?.lat, 54, 'the newest of hers')
  for (const state of ['assigned', 'finished', 'cancelled']) {
    await task({ ...started, state, finishedAt: at(9), updatedAt: at(9) })
    t.equal((await follow(10))?.position, undefined, state)
  }
  const { startedBy: _nobody, ...unknown } = started
  await task(unknown)
  t.equal((await follow(10))?.position, undefined, 'nobody knows who started it')
})

test('an arrival is at the speed of the last minutes, and nothing of it when the history is away', async (t) => {
  const moving = Array.from({ length: 11 }, (_, i) => ({
    recordedAt: START + i * MINUTE_MS,
    latE7: 52e7 + i * 53_959, // 10 m/s
    lngE7: 21e7,
  }))
  t.ok(Math.abs((speedAlong(moving) ?? 0) - 10) < 0.01)
  t.equal(speedAlong(moving.slice(0, 1)), undefined)
  const started = { state: 'inProgress', startedAt: at(0), startedBy: 'ada', lat: 52.5, lng: 21 }
  const meters = 0.5 * (Math.PI / 180) * 6_371_008.8 * 1.3
  const { history, shared, task, position, put, follow } = await open(t)
  await shared({ taskId: 't' })
  await put('trackers', 'phone', { userId: 'ada' })
  await position('phone', 10, 52)
  await task(started)
  for (const [points, speed, fails] of [
    [moving, 10, false],
    [moving.map((point) => ({ ...point, latE7: 52e7 })), 8, false],
    [[], 8, true],
  ] as const) {
    Object.assign(history, { points, fails })
    const followed = await follow(10)
    t.equal(followed?.eta?.distanceMeters, Math.round(meters))
    t.ok(Math.abs(Date.parse(followed?.eta?.at ?? '') - START - 10 * MINUTE_MS - (meters / speed) * 1000) < 2_000)
    t.equal(followed?.trail?.length, fails ? undefined : points.length)
  }
})

test('an arrival is by road where there is a server of roads, which many ask once', async (t) => {
  const { shared, task, position, put, follow } = await open(t)
  await shared({ taskId: 't' })
  await put('trackers', 'phone', { userId: 'ada' })
  await position('phone', 10, 52)
  await task({ state: 'inProgress', startedAt: at(0), startedBy: 'ada', lat: 52.5, lng: 21 })
  const clock = new FakeClock(START)
  const asked: unknown[] = []
  let answer: () => Promise<Awaited<ReturnType<TravelTimes['table']>>>
  const road = (meters: number, seconds: number) => async () => ({
    distances: Float32Array.of(0, meters, meters, 0),
    durations: Float32Array.of(0, seconds, seconds, 0),
  })
  const table = (places: unknown) => {
    asked.push(places)
    return answer()
  }
  const roads = new Roads({ table }, clock)
  answer = road(70_000, 3_600)
  const all = await Promise.all(Array.from({ length: 20 }, () => follow(10, roads)))
  t.same(all[19]?.eta, { at: at(70), distanceMeters: 70_000 })
  t.same(asked, [
    [
      { lat: 52, lng: 21 },
      { lat: 52.5, lng: 21 },
    ],
  ])
  const crow = (await follow(10))?.eta
  t.not(crow?.distanceMeters, 70_000)
  for (const [without, why] of [
    [road(1e9, 1e9), 'no road leads there'],
    [() => Promise.reject(new Failure('engine_down')), 'the server is away'],
  ] as const) {
    clock.advance(10_000)
    answer = without
    t.same((await follow(10, roads))?.eta, crow, why)
  }
  t.equal(asked.length, 3)
})

test('whoever waits for a parcel is told how many stops of its route come before', async (t) => {
  const { shared, task, put, follow } = await open(t)
  await shared({ taskId: 't' })
  const stop = (id: string, row: object) => put('tasks', id, { routingResultId: 'r', updatedAt: at(0), ...row })
  const inRoute = { routingResultId: 'r', assigneeIds: ['ada'], state: 'assigned' }
  const visits = ['a', 'b', 'gone', 't', 'c'].map((taskId) => ({ taskId }))
  await put('routingResults', 'r', {
    routes: [
      { userId: 'bob', visits: [{ taskId: 'x' }] },
      { userId: 'ada', visits },
    ],
  })
  for (const id of ['a', 'b', 'c', 'x']) await stop(id, { state: 'assigned' })
  await task({ assigneeIds: ['ada'] })
  t.notOk('visitsBefore' in ((await follow(0)) ?? {}), 'in no route')
  await task(inRoute)
  t.equal((await follow(0))?.visitsBefore, 2, 'neither the other route, nor what is deleted, nor what comes after')
  await stop('a', { state: 'finished' })
  t.equal((await follow(0))?.visitsBefore, 1)
  await stop('b', { state: 'assigned', routingResultId: 'later' })
  t.equal((await follow(0))?.visitsBefore, 0, 'one that went to another route')
  await task({ ...inRoute, assigneeIds: ['bob'] })
  t.equal((await follow(0))?.visitsBefore, undefined, 'given to somebody else since')
  await task({ ...inRoute, state: 'finished', finishedAt: at(0) })
  t.equal((await follow(0))?.visitsBefore, undefined, 'done')
  const page = followPage(
    { organization: { name: 'C', logo: null }, task: { title: 'T', state: 'assigned' }, visitsBefore: 3 },
    { language: 'en', timeZone: 'UTC' },
  )
  t.match(page, '<dt>Stops before</dt><dd>3</dd>')
})

test('many who follow one share ask the history once in ten seconds, and again after a failure', async (t) => {
  const clock = new FakeClock(START)
  let asked = 0
  let fails = false
  const history = {
    rows: async () => {
      asked++
      if (fails) throw new Failure('engine_down')
      return [{ at: START, latE7: 1, lngE7: 2 }]
    },
  }
  const tracks = new Tracks({ history: history as never, clock })
  const question = { organizationId: ORGANIZATION, trackerId: ORGANIZATION, from: START, to: START + 1 }
  const all = await Promise.all(Array.from({ length: 100 }, () => tracks.read('one', question)))
  t.equal(asked, 1)
  t.same(all[99], [{ recordedAt: START, latE7: 1, lngE7: 2 }])
  clock.advance(10_000)
  fails = true
  await t.rejects(tracks.read('one', question))
  fails = false
  await tracks.read('one', question)
  t.equal(asked, 3)
})

test('the page is text in the reader’s language, whatever stands in it', async (t) => {
  const bad = '"><script>alert(1)</script>\u202e'
  const task = { title: bad, state: 'inProgress', window: { from: at(0), to: at(60) }, lat: 52, lng: 179.99 }
  const position = { lat: 52, lng: -179.99, recordedAt: at(30) }
  const eta = { at: at(40), distanceMeters: 2_345 }
  const followed = {
    organization: { name: bad, logo: bad },
    task,
    position,
    eta,
    trail: [[-179.98, 52]] as [number, number][],
  }
  const page = followPage(followed, { language: 'pl', timeZone: 'Europe/Warsaw' })
  t.notMatch(page, '<script')
  t.match(page, 'W drodze')
  t.match(page, '09:40', 'in the time zone of the organization')
  t.match(page, '2,3')
  t.match(endedPage('ar', false), 'dir="rtl"')
  const [, x1, x2] = /x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"/.exec(drawing(followed, 'x')) ?? []
  t.ok(Number(x1) > Number(x2) && Number(x1) <= 320 && Number(x2) >= 0, 'the short way round the antimeridian')
  for (const [accepted, organization, language] of [
    ['de-AT,de;q=0.9,en;q=0.8', undefined, 'de'],
    ['fr, pl;q=0.3, ar;q=0.7', undefined, 'ar'],
    ['en;q=0, pl;q=0.1', undefined, 'pl'],
    ['xx,__proto__,constructor', 'pl-PL', 'pl'],
    [undefined, 'fr', 'en'],
    [','.repeat(100_000), 'de', 'de'],
  ] as const)
    t.equal(languageOf(accepted, organization), language, `${accepted?.slice(0, 30)}`)
})
