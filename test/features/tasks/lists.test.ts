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

test('a list of many ids has them all on one page', async (t) => {
  const { owner, flow, hubId } = await openTasks(t)
  const tasks = Array.from({ length: 30 }, (_, i) => ({ flowId: flow._id, title: `Stop ${i}`, hubId }))
  const { created } = (await owner.call('POST', '/tasks/bulk', { tasks })).body.data
  t.match((await owner.call('GET', `/tasks?_id=${created}`)).body, { limit: 30, total: 30, nextCursor: null })
  t.match((await owner.call('GET', '/tasks')).body, { limit: 20, total: 30 })
  t.equal((await owner.call('GET', `/tasks?_id=${Array(501).fill(created[0])}`)).status, 400)
})
