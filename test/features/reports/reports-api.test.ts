import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import type { TaskRow } from '../../../src/features/tasks/views.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { ownerOf } from '../../support/geofence-world.ts'
import { demoTrace, openHistory, openReports } from '../../support/reports-world.ts'
import { seeded } from '../../support/random.ts'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-05-04T00:00:00Z')
const BOUNDS = 'from=2026-05-04T00:00:00Z&to=2026-05-05T00:00:00Z'
const DEMO = 'from=2024-02-19T00:00:00Z&to=2024-02-20T00:00:00Z'
const iso = (at: number): string => new Date(at).toISOString()

test('every report is walked page by page, in each format, by a cursor that is good for it alone', async (t) => {
  const { ask, rows, insert } = await openReports(t)
  await insert(demoTrace())
  for (const report of ['summary?per=total&', 'stops?minSeconds=60&', 'speeding?speedLimit=8&']) {
    const whole = await rows(`${report}${DEMO}`)
    const paged: unknown[] = []
    let cursor = ''
    do {
      const { json, headers } = await ask(`${report}${DEMO}&limit=37${cursor}`)
      t.match(json, { page: null, limit: 37 })
      t.equal(headers.link !== undefined, json.nextCursor !== null)
      paged.push(...json.data)
      cursor = json.nextCursor === null ? '' : `&cursor=${json.nextCursor}`
    } while (cursor !== '')
    t.ok(whole.length > 40, `${whole.length} rows`)
    t.strictSame(paged, whole)
    const first = await ask(`${report}${DEMO}&limit=1`)
    t.match(await ask(`${report}${DEMO.replace('20T', '21T')}&cursor=${first.json.nextCursor}`), { status: 400 })
    const csv = await ask(`${report}${DEMO}&format=csv`)
    t.equal(csv.headers['content-type'], 'text/csv; charset=utf-8')
    t.match(csv.headers['content-disposition'], /attachment; filename="\w+\.csv"/)
    t.equal(csv.text.trimEnd().split('\n').length, whole.length + 1)
    const chosen = await ask(`${report}${DEMO}&limit=1&fields=trackerId`)
    t.strictSame(Object.keys(chosen.json.data[0]), ['trackerId'])
  }
})

test('names are quoted in csv, and none is a formula', async (t) => {
  const { ask, insert } = await openReports(t, { trackerNames: async (_id, ids) => ids.map(() => '=1+"x",2') })
  await insert(demoTrace().slice(0, 5))
  const { text } = await ask(`summary?${DEMO}&per=total&format=csv`)
  t.match(text, /,"'=1\+""x"",2",total,/)
})

test('visits last from an entry to the next leave, also from before and beyond the bounds', async (t) => {
  const { rows, ask, decide, organizationId } = await openReports(t)
  const crossing = (tracker: string, fence: string, type: Transition['type'], at: number): Transition => ({
    kind: 'transition',
    _id: idFrom(tracker, fence, type, at),
    organizationId,
    trackerId: idFrom(tracker),
    geofenceId: idFrom(fence),
    geofenceGroupId: idFrom('group'),
    type,
    at,
    cause: 'point',
    point: { recordedAt: at, lat: 0, lng: 0 },
  })
  // Alternating crossings over three days, at random times, of 5 trackers and 4 geofences.
  const next = seeded(7)
  const all: Transition[] = []
  const slow: object[] = []
  const [from, to] = [START, START + 24 * HOUR_MS]
  for (const tracker of ['a', 'b', 'c', 'd', 'e'])
    for (const fence of ['f', 'g', 'h', 'i']) {
      const count = 1 + Math.floor(next() * 9)
      const times = Array.from({ length: count }, () => from + Math.floor((next() * 72 - 24) * HOUR_MS))
      times.sort((one, other) => one - other)
      all.push(...times.map((at, i) => crossing(tracker, fence, i % 2 === 0 ? 'entry' : 'leave', at)))
      for (let i = 0; i < times.length; i += 2) {
        const left = times[i + 1] <= to ? times[i + 1] : undefined
        if (times[i] > to || (left !== undefined && left < from)) continue
        slow.push({
          trackerId: idFrom(tracker),
          geofenceId: idFrom(fence),
          enteredAt: iso(times[i]),
          ...(left !== undefined && { leftAt: iso(left) }),
          seconds: ((left ?? to) - times[i]) / 1000,
        })
      }
    }
  await decide(all)
  const sorted = (list: object[]) => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  const found = await rows(`visits?${BOUNDS}`)
  t.strictSame(sorted(found), sorted(slow))
  const one = await rows(`visits?${BOUNDS}&geofenceId=${idFrom('f')},${idFrom('g')}&trackerId=${idFrom('a')}`)
  t.strictSame(
    one,
    found.filter((row) => row.trackerId === idFrom('a') && [idFrom('f'), idFrom('g')].includes(row.geofenceId)),
  )
  const paged: object[] = []
  for (let cursor = ''; ; ) {
    const { json } = await ask(`visits?${BOUNDS}&limit=3${cursor}`)
    paged.push(...json.data)
    if (json.nextCursor === null) break
    cursor = `&cursor=${json.nextCursor}`
  }
  t.strictSame(paged, found)
})

test('whoever sees no geofences gets no visits, no limits and no geofences of stops', async (t) => {
  const { ask, insert } = await openReports(t, {
    seesGeofences: () => false,
    placesOf: () => async () => [randomUUID()],
    limitsOf: async () => () => ({ limit: 1, geofenceId: randomUUID() }),
  })
  await insert(demoTrace())
  t.strictSame((await ask(`visits?${DEMO}`)).json.data, [])
  t.strictSame((await ask(`speeding?${DEMO}&geofenceGroupId=${randomUUID()}`)).json.data, [])
  t.notOk('geofenceIds' in (await ask(`stops?${DEMO}`)).json.data[0])
})

test('a caller gets the trackers that they see, and of those what is asked for', async (t) => {
  const trackers = [...new Set(demoTrace().map(({ trackerId }) => trackerId))].sort()
  let visible: string[] = trackers.slice(0, 20)
  const { rows, ask, insert } = await openReports(t, {
    visibleTrackers: async () => visible,
    tables: {
      find: (async (_table: string, _scope: string, { where }: { where: { [field: string]: string[] } }) => {
        const range = where.hubIds === undefined ? [15, 30] : [10, 18]
        return { rows: trackers.slice(...range).map((id) => ({ id, row: {} })), next: null }
      }) as never,
      async *scan() {},
      getMany: async () => [],
    },
  })
  await insert(demoTrace())
  const seen = async (query: string): Promise<string[]> =>
    (await rows(`summary?${DEMO}&per=total${query}`)).map(({ trackerId }) => trackerId).sort()
  t.strictSame(await seen(''), trackers.slice(0, 20))
  t.strictSame(await seen(`&trackerId=${trackers[3].toUpperCase()},${trackers[25]}`), [trackers[3]])
  t.strictSame(await seen(`&hubId=${randomUUID()}&userId=${randomUUID()}`), trackers.slice(15, 18))
  visible = []
  t.strictSame((await ask(`stops?${DEMO}`)).json.data, [])
})

test('bad input is refused by name', async (t) => {
  const { ask } = await openReports(t)
  const owner = { ...ownerOf(randomUUID()), permissions: new Set(['view/task', 'view/location-history']) }
  const refused = async (query: string, path: string) =>
    t.match(await ask(query, owner), { status: 400, body: { errors: [{ path }] } }, query)
  await refused('summary?from=2026-05-04T00:00:00Z', '/to')
  await refused('summary?from=2025-01-01T00:00:00Z&to=2026-02-06T00:00:00Z', '/to')
  await refused('summary?from=2026-05-05T00:00:00Z&to=2026-05-04T00:00:00Z', '/to')
  await refused('summary?from=yesterday&to=2026-05-04T00:00:00Z', '/from')
  await refused(`summary?${BOUNDS}&per=hour`, '/per')
  await refused(`summary?${BOUNDS}&timeZone=Mars/Base`, '/timeZone')
  await refused(`summary?${BOUNDS}&trackerId=1`, '/trackerId')
  await refused(`summary?${BOUNDS}&trackerId=null`, '/trackerId')
  await refused(`summary?${BOUNDS}&color=red`, '/color')
  await refused(`summary?${BOUNDS}&fields=salary`, '/fields')
  await refused(`summary?${BOUNDS}&cursor=abc`, '/cursor')
  await refused(`stops?${BOUNDS}&minSeconds=0`, '/minSeconds')
  await refused(`stops?${BOUNDS}&radiusMeters=1e400`, '/radiusMeters')
  await refused(`speeding?${BOUNDS}`, '/speedLimit')
  await refused(`speeding?${BOUNDS}&speedLimit=5&geofenceGroupId=${randomUUID()}`, '/speedLimit')
  await refused(`tasks?${BOUNDS}&groupBy=color`, '/groupBy')
  await refused(`tasks?${BOUNDS}&trackerId=${randomUUID()}`, '/trackerId')
})

test('whoever leaves ends the question, and a fleet is never asked for at once', async (t) => {
  const history = await openHistory(t)
  let open = 0
  let asked = 0
  const counted = {
    rows: history.rows.bind(history),
    query: async function* (...question: Parameters<typeof history.query>) {
      open++
      asked++
      const { trackers } = question[1] as { trackers: string[] }
      t.ok(trackers.length <= 2_000)
      try {
        yield* history.query(...question)
      } finally {
        open--
      }
    },
  }
  const { insert, ask, open: begin } = await openReports(t, { history: counted }, history)
  await insert(demoTrace())
  for (const report of ['summary?per=day&', 'stops?minSeconds=60&', 'speeding?speedLimit=1&']) {
    const gone = new AbortController()
    const { stream } = await begin(`${report}${DEMO}&format=ndjson`, gone.signal)
    let bytes = 0
    let begun = Number.NaN
    for await (const chunk of stream ?? []) {
      bytes += chunk.length
      if (bytes === 0 || gone.signal.aborted) continue
      begun = asked
      gone.abort(new Error('the client left'))
    }
    t.equal(open, 0, `${report} leaves no question open`)
    t.ok(asked <= begun + 1, `and asks no further: ${begun}, ${asked}`)
    const left = asked
    await ask(`${report}${DEMO}&format=ndjson`)
    t.ok(asked - left > begun - left + 2, `a whole answer takes ${asked - left} questions`)
  }
  const before = asked
  await ask(`summary?${DEMO}&per=total&limit=5`)
  t.equal(open, 0)
  t.equal(asked - before, 2, 'a small page asks for few trackers: their sums and trips')
})

test('a failure before the first row is answered as one', async (t) => {
  const history = {
    rows: async () => {
      throw new Failure('engine_down')
    },
    query: async function* () {
      yield new Uint8Array()
    },
  }
  const { ask } = await openReports(t, { history: history as never }, await openHistory(t))
  const answer = await ask(`summary?${DEMO}`)
  t.match(answer, { status: 503, body: { code: 'engine_down' } })
})

const FLOW = randomUUID()
const [ADA, BOB] = [idFrom('ada'), idFrom('bob')]

const taskRow = (id: number, more: Partial<TaskRow>): TaskRow => ({
  _id: idFrom('task', id),
  organizationId: '',
  version: 1,
  createdAt: iso(START),
  flowId: FLOW,
  flowVersion: 1,
  title: 'Deliver',
  hubId: idFrom('hub'),
  assigneeIds: [],
  components: {},
  state: 'new',
  createdBy: { type: 'user', id: ADA },
  ...more,
})

test('tasks are counted by what became of them between the bounds, as the caller sees them', async (t) => {
  const tasks = [
    taskRow(1, {
      assigneeIds: [ADA],
      state: 'finished',
      startedAt: iso(START + HOUR_MS),
      finishedAt: iso(START + 2 * HOUR_MS),
      window: { from: iso(START), to: iso(START + 3 * HOUR_MS) },
    }),
    taskRow(2, {
      assigneeIds: [ADA, BOB],
      state: 'finished',
      createdAt: iso(START - HOUR_MS),
      startedAt: iso(START + 2 * HOUR_MS),
      finishedAt: iso(START + 23 * HOUR_MS),
      dueAt: iso(START + 3 * HOUR_MS),
    }),
    taskRow(3, { state: 'cancelled', cancelledAt: iso(START + 5 * HOUR_MS) }),
    taskRow(4, { assigneeIds: [BOB], hubId: idFrom('elsewhere') }),
    taskRow(5, { assigneeIds: [BOB], createdAt: iso(START - 48 * HOUR_MS) }),
  ]
  const { ask } = await openReports(t, {
    tables: {
      find: async () => ({ rows: [], next: null }),
      getMany: async () => [],
      async *scan() {
        for (const row of tasks) yield { scope: '', id: row._id, row: row as never }
      },
    },
  })
  const owner = {
    ...ownerOf(randomUUID()),
    permissions: new Set(['view/task', 'dispatch/task']),
  }
  const get = async (query: string, caller = owner) => (await ask(`tasks?${BOUNDS}${query}`, caller)).json.data
  const counts = { created: 0, finished: 0, cancelled: 0, late: 0, onTime: 0 }
  t.strictSame(await get(''), [
    { key: null, ...counts, created: 1, cancelled: 1, meanMinutesToStart: null, meanMinutesOfWork: null },
    ...[
      {
        key: ADA,
        ...counts,
        created: 1,
        finished: 2,
        late: 1,
        onTime: 1,
        meanMinutesToStart: 120,
        meanMinutesOfWork: (60 + 21 * 60) / 2,
      },
      { key: BOB, ...counts, created: 1, finished: 1, late: 1, meanMinutesToStart: 180, meanMinutesOfWork: 1_260 },
    ].sort((a, b) => (a.key < b.key ? -1 : 1)),
  ])
  t.match(await get(`&userId=${ADA}&groupBy=hubId`), [{ key: idFrom('hub'), created: 1, finished: 2 }])
  t.match(await get('&groupBy=day&timeZone=Asia/Tokyo'), [
    { key: '2026-05-04', created: 3, finished: 1, cancelled: 1 },
    { key: '2026-05-05', finished: 1 },
  ])
  const bob = {
    ...owner,
    userId: BOB,
    permissions: new Set(['view/task']),
    hubIds: [idFrom('hub')] as 'all' | string[],
  }
  t.match(await get('&groupBy=flowId', bob as typeof owner), [{ key: FLOW, created: 0, finished: 1 }])
})
