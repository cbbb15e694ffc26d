import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'

test('filters take several values, lists any ids, and null finds what is without', async (t) => {
  const { owner, ada, bob, task, make, move, hubId, other } = await openTasks(t)
  const teamId = (await make('/team', { name: 'Team', hubId, userIds: [ada.id] }))._id
  const one = await task({ tags: ['a,b'], externalId: 'one' })
  const two = await task({ assigneeIds: [ada.id], teamId, tags: ['c'] })
  const three = await task({ assigneeIds: [bob.id], hubId: other })
  await move(three._id, 'cancel')
  const found = async (query: string, by = owner) => {
    const { status, body } = await by.call('GET', `/tasks?${query}`)
    if (status !== 200) return body.errors[0].path
    t.equal(body.total, body.data.length, `the total of ${query}`)
    const ids = body.data.map(({ _id }: { _id: string }) => _id)
    return [one, two, three].flatMap(({ _id }, i) => (ids.includes(_id) ? [i + 1] : []))
  }
  for (const [query, expected] of [
    ['state=new,assigned', [1, 2]],
    ['state=new&state=cancelled', [1, 3]],
    ['state=new,done', '/state'],
    [`hubId=${hubId},${other.toUpperCase()}`, [1, 2, 3]],
    [`hubId=${hubId}&hubId=${other}&state=assigned`, [2]],
    [`_id=${two._id},${three._id}`, [2, 3]],
    [`_id=${two._id},x`, '/_id'],
    ['tags=a,b', [1]],
    ['tags=a,b&tags=c', [1, 2]],
    ['tags=a', []],
    ['tags=null', [3]],
    ['assigneeId=null', [1]],
    [`assigneeId=me,${bob.id}`, [3]],
    [`assigneeId=null,${bob.id}`, [1, 3]],
    ['teamId=null', [1, 3]],
    [`teamId=null,${teamId}&assigneeId=${ada.id}`, [2]],
    ['teamId=null&assigneeId=null', [1]],
    ['externalId=null', [2, 3]],
    ['priority=null', [1, 2, 3]],
    ['hubId=null', []],
  ] as const)
    t.same(await found(query), expected, query)
  t.same(await found('assigneeId=me', ada.session), [2])
  t.same((await owner.call('GET', `/users?_id=${ada.id},${bob.id}&fields=name`)).body.total, 2)
  const first = await owner.call('GET', '/tasks?tags=a,b&tags=c&limit=1')
  const next = /<\/api\/v3([^>]+)>/.exec(first.headers.link)?.[1] as string
  const pages = [first.body.data[0]._id, (await owner.call('GET', next)).body.data[0]._id]
  t.same(pages.sort(), [one._id, two._id].sort(), 'the link asks the same')
})

test('an externalId that counts as taken is found, in whatever case and Unicode form', async (t) => {
  const { owner, flow, hubId, task } = await openTasks(t)
  const { _id } = await task({ externalId: 'Caf\u00e9 1' })
  const other = await task({ externalId: 'other' })
  const found = async (path: string): Promise<string[]> =>
    (await owner.call('GET', path)).body.data.map(({ _id }: { _id: string }) => _id)
  for (const written of ['Caf\u00e9 1', 'Cafe\u0301 1', 'CAF\u00c9 1', 'caf\u00e9 1']) {
    const again = { flowId: flow._id, title: 'Again', hubId, externalId: written }
    t.equal((await owner.call('POST', '/task', again)).status, 409, 'taken')
    const query = `externalId=${encodeURIComponent(written)}`
    t.same(await found(`/tasks?${query}`), [_id])
    t.same(new Set(await found(`/tasks?${query}&externalId=OTHER`)), new Set([_id, other._id]))
    t.match((await owner.call('GET', `/tasks/summary?groupBy=state&${query}`)).body.data, [{ count: 1 }])
  }
  t.same(await found('/tasks?externalId=Cafe'), [])
  await owner.call('PATCH', `/task/${_id}`, { externalId: 'tea' })
  t.same(await found(`/tasks?externalId=${encodeURIComponent('CAF\u00c9 1')}`), [], 'the value was given up')
})

test('a list of many ids has them all on one page', async (t) => {
  const { owner, flow, hubId } = await openTasks(t)
  const tasks = Array.from({ length: 30 }, (_, i) => ({ flowId: flow._id, title: `Stop ${i}`, hubId }))
  const { created } = (await owner.call('POST', '/tasks/bulk', { tasks })).body.data
  t.match((await owner.call('GET', `/tasks?_id=${created}`)).body, { limit: 30, total: 30, nextCursor: null })
  t.match((await owner.call('GET', '/tasks')).body, { limit: 20, total: 30 })
  t.equal((await owner.call('GET', `/tasks?_id=${Array(501).fill(created[0])}`)).status, 400)
})

test('tasks are found by who made, started and finished them, and when', async (t) => {
  const { owner, ada, bob, task, move, at, clock } = await openTasks(t)
  const [one, two, three] = [
    await task({ assigneeIds: [ada.id] }),
    await task({ assigneeIds: [bob.id] }),
    await task({ assigneeIds: [ada.id] }),
  ]
  const found = async (query: string, by = owner) => {
    const { status, body } = await by.call('GET', `/tasks?${query}`)
    if (status !== 200) return body.errors[0].path
    const ids = body.data.map(({ _id }: { _id: string }) => _id)
    return [one, two, three].flatMap(({ _id }, i) => (ids.includes(_id) ? [i + 1] : []))
  }
  const begin = at(0)
  for (const [{ _id }, { session }] of [
    [one, ada],
    [two, bob],
  ] as const) {
    await move(_id, 'start', {}, session)
    clock.advance(60_000)
    t.equal((await move(_id, 'finish', { components: { receiver: 'Eve' } }, session)).status, 200)
  }
  await move(three._id, 'start', {}, ada.session)
  for (const [query, expected] of [
    ['createdBy=me', [1, 2, 3]],
    [`createdBy=${ada.id}`, []],
    ['createdBy=make-samples', []],
    ['createdBy=make-samples,me', [1, 2, 3]],
    ['createdBy=nobody', '/createdBy'],
    [`startedBy=${ada.id}`, [1, 3]],
    [`startedBy=${ada.id},${bob.id}&finishedBy=null`, [3]],
    [`finishedBy=${ada.id.toUpperCase()}&finishedBy=${bob.id}`, [1, 2]],
    ['finishedBy=nobody', '/finishedBy'],
    [`finishedFrom=${begin}&finishedTo=${at(-60)}`, [1]],
    [`finishedFrom=${at(-1)}`, [2]],
    [`finishedTo=${begin}`, []],
    ['finishedTo=yesterday', '/finishedTo'],
    [`finishedFrom=${at(0)}&finishedTo=${begin}`, '/finishedTo'],
  ] as const)
    t.same(await found(query), expected, query)
  t.same(await found('startedBy=me', bob.session), [2])
})

test('tasks are found by what is filled in', async (t) => {
  const { owner, make, hubId, flow } = await openTasks(t)
  const components = [
    { id: 'size', type: 'option', options: ['big', 'small'] },
    { id: 'kind', type: 'option', options: ['a,b', 'c'] },
    { id: 'note', type: 'text' },
    { id: 'code', type: 'barcode' },
    { id: 'parcels', type: 'number' },
  ]
  const { _id: flowId } = await make('/flow', { name: 'Sizes', steps: [{ id: 'one', name: 'One', components }] })
  const tasks: { _id: string }[] = []
  for (const values of [
    { size: 'big', kind: 'a,b', note: 'x,y', code: '00' },
    { size: 'small', kind: 'c', note: 'z'.repeat(300) },
    { code: '00' },
  ])
    tasks.push(await make('/task', { flowId, title: 'T', hubId, components: values }))
  await make('/task', { flowId: flow._id, title: 'Other', hubId, components: { receiver: 'big' } })
  const found = async (query: string) => {
    const { status, body } = await owner.call('GET', `/tasks?flowId=${flowId}&${query}`)
    if (status !== 200) return body.errors[0].path
    t.equal(body.total, body.data.length, `the total of ${query}`)
    const ids = body.data.map(({ _id }: { _id: string }) => _id)
    return tasks.flatMap(({ _id }, i) => (ids.includes(_id) ? [i + 1] : []))
  }
  for (const [query, expected] of [
    ['components.size=big', [1]],
    ['components.size=big,small', [1, 2]],
    ['components.size=big&components.size=small&components.code=00', [1]],
    ['components.size=null', [3]],
    ['components.size=null,small', [2, 3]],
    ['components.size=null,small&components.note=null', [3]],
    ['components.kind=a,b', [1]],
    ['components.kind=c,d', '/components.kind'],
    ['components.size=big,', '/components.size'],
    ['components.size=huge', '/components.size'],
    ['components.size=big,huge', '/components.size'],
    ['components.note=x,y', [1]],
    [`components.note=${'z'.repeat(300)}`, [2]],
    ['components.note=x', []],
    ['components.code=00&components.note=x,y', [1]],
    ['components.parcels=1', '/components.parcels'],
    ['components.colour=red', '/components.colour'],
    [`flowId=${flow._id}&components.size=big`, '/flowId'],
  ] as const)
    t.same(await found(query), expected, query)
  t.match(await owner.call('GET', '/tasks?components.size=big'), {
    status: 400,
    body: { errors: [{ path: '/flowId' }] },
  })
})
