import { test } from 'tap'
import { PASSWORD } from '../../support/open-identity.ts'
import { openTasks } from '../../support/open-tasks.ts'
import { seeded } from '../../support/random.ts'
import type { Json } from '../../support/service.ts'

const GROUPS: { [groupBy: string]: (task: Json, dayOf: (at: string) => string) => (string | null)[] } = {
  state: ({ state }) => [state],
  flowId: ({ flowId }) => [flowId],
  hubId: ({ hubId }) => [hubId],
  teamId: ({ teamId }) => [teamId ?? null],
  assigneeId: ({ assigneeIds }) => (assigneeIds.length === 0 ? [null] : assigneeIds),
  day: ({ window, createdAt }, dayOf) => [dayOf(window?.from ?? createdAt)],
}

/** What a summary says, from the rows of the list. */
const summaryOf = (tasks: readonly Json[], groupBy: string, now: number, timeZone: string): Json[] => {
  // The form of sv-SE is 2026-11-20.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
  const groups = new Map<string | null, Json>()
  for (const task of tasks)
    for (const key of GROUPS[groupBy](task, (at) => format.format(new Date(at)))) {
      const group = groups.get(key) ?? { key, count: 0, late: 0 }
      const end = task.state === 'cancelled' ? undefined : task.window?.to
      const at = task.state === 'finished' ? Date.parse(task.finishedAt) : now
      groups.set(key, { key, count: group.count + 1, late: group.late + (end < new Date(at).toISOString() ? 1 : 0) })
    }
  return [...groups.values()]
}

const byKey = (groups: readonly Json[]): Json[] => [...groups].sort((a, b) => (String(a.key) < String(b.key) ? -1 : 1))

test('a summary counts what the list has, for everyone and under every filter', async (t) => {
  const { owner, ada, bob, task, move, make, login, hubId, other, clock, at, flow } = await openTasks(t)
  const timeZone = 'Europe/Warsaw'
  t.equal((await owner.call('PATCH', '/organization/settings', { timeZone })).status, 200)
  const teamId = (await make('/team', { name: 'Team', hubId, userIds: [ada.id] }))._id
  const choice = <V>(values: readonly V[], random: () => number): V => values[Math.floor(random() * values.length)]
  const random = seeded(7)
  for (let i = 0; i < 60; i++) {
    const hub = choice([hubId, other], random)
    const people = choice([[], [bob.id], hub === hubId ? [ada.id, bob.id] : [bob.id]], random)
    const isTeams = hub === hubId && !people.includes(bob.id) && random() < 0.5
    const from = Date.parse('2026-03-28T22:30:00Z') + Math.floor(random() * 60) * 3_600_000
    const { _id } = await task({
      hubId: hub,
      assigneeIds: people,
      ...(isTeams && { teamId }),
      title: choice(['Deliver', 'Collect'], random),
      components: { parcels: i % 3, receiver: choice(['Eve', 'Max'], random) },
      ...(random() < 0.8 && {
        window: choice(
          [
            { from: new Date(from).toISOString(), to: new Date(from + 7_200_000).toISOString() },
            { from: at(-60), to: at(60) },
            { from: at(-7_200), to: at(-3_600) },
          ],
          random,
        ),
      }),
    })
    const step = random()
    if (step < 0.2) await move(_id, 'cancel')
    else if (people.length > 0 && step < 0.7) {
      await move(_id, 'start', {}, bob.session)
      if (step < 0.5) await move(_id, 'finish', { components: { receiver: 'Eve' } }, bob.session)
    }
    clock.advance(61_000)
  }
  const callers = [owner, ada.session, bob.session, await clerkOf(other)]
  const filters = [
    '',
    'state=new,assigned',
    `hubId=${hubId}`,
    'teamId=null',
    `assigneeId=null,${bob.id}`,
    'q=deliver',
    `finishedBy=${bob.id}`,
    `from=2026-03-29T00:00:00Z&to=2026-03-30T00:00:00Z`,
    `flowId=${flow._id}&components.receiver=Eve`,
    `flowId=${flow._id}&components.receiver=null`,
  ]
  async function clerkOf(hub: string) {
    const role = await make('/role', { name: 'Clerk', permissions: ['view/task', 'edit/task', 'dispatch/task'] })
    const email = `clerk.${owner.email}`
    await make('/user', { name: 'C', email, password: PASSWORD, roleId: role._id, hubId: [hub] })
    return login(email)
  }
  for (const [i, caller] of callers.entries())
    for (const filter of filters) {
      const tasks = (await caller.call('GET', `/tasks?limit=500&${filter}`)).body.data
      for (const groupBy of Object.keys(GROUPS)) {
        const { status, body } = await caller.call('GET', `/tasks/summary?groupBy=${groupBy}&${filter}`)
        t.equal(status, 200)
        t.same(byKey(body.data), byKey(summaryOf(tasks, groupBy, clock.now(), timeZone)), `${i} ${groupBy} ${filter}`)
      }
    }
})

test('a summary tells nothing of what the caller does not see, and refuses what it does not know', async (t) => {
  const { owner, ada, bob, task, hubId, other } = await openTasks(t)
  await task({ assigneeIds: [bob.id], hubId: other })
  await task({ assigneeIds: [bob.id] })
  const own = await task({ assigneeIds: [ada.id] })
  const summary = (query: string, by = ada.session) => by.call('GET', `/tasks/summary?${query}`)
  t.same((await summary('groupBy=hubId')).body.data, [{ key: hubId, count: 1, late: 0 }])
  t.same((await summary('groupBy=assigneeId')).body.data, [{ key: ada.id, count: 1, late: 0 }])
  t.same((await summary('groupBy=hubId&fields=count')).body.data, [{ key: hubId, count: 1 }])
  t.same((await summary(`groupBy=state&hubId=${other}`)).body.data, [])
  t.same((await summary(`groupBy=state&assigneeId=${bob.id}`)).body.data, [])
  t.same((await summary(`groupBy=day&_id=${own._id}`)).body.data.length, 1)
  for (const [query, path] of [
    ['', '/groupBy'],
    ['groupBy=title', '/groupBy'],
    ['groupBy=organizationId', '/groupBy'],
    ['groupBy=people', '/groupBy'],
    ['groupBy=state&groupBy=hubId', '/groupBy'],
    ['groupBy=state&limit=1', '/limit'],
    ['groupBy=state&state=done', '/state'],
  ])
    t.match(await summary(query, owner), { status: 400, body: { errors: [{ path }] } }, query)
})

test('a summary by day ends, however early or late the window of a task is', async (t) => {
  const { owner, task } = await openTasks(t)
  const windowOf = (from: string) => ({ window: { from, to: from } })
  await task(windowOf('0000-01-01T00:00:00Z'))
  await task(windowOf('9999-12-31T23:00:00Z'))
  for (const timeZone of ['UTC', 'America/New_York', 'Pacific/Kiritimati']) {
    t.equal((await owner.call('PATCH', '/organization/settings', { timeZone })).status, 200)
    const { status, body } = await owner.call('GET', '/tasks/summary?groupBy=day')
    t.equal(status, 200)
    t.same(
      body.data.map(({ key, count }: Json) => [key, count]),
      [
        ['0000-01-01', 1],
        ['9999-12-31', 1],
      ],
      timeZone,
    )
  }
})
