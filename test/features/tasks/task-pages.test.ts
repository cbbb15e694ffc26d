import { test } from 'tap'
import type { Session } from '../../support/open-identity.ts'
import { openTasks } from '../../support/open-tasks.ts'

test('a page that is asked for again and again shows each viewer their tasks as they are', async (t) => {
  const { task, move, ada, bob, owner, other } = await openTasks(t)
  const tasks = [
    await task({ title: 'one', assigneeIds: [ada.id], priority: 1 }),
    await task({ title: 'two', assigneeIds: [bob.id], priority: 2 }),
    await task({ title: 'three', assigneeIds: [ada.id, bob.id], priority: 3 }),
    await task({ title: 'four', priority: 4 }),
  ]
  const seen = async (session: Session, query: string): Promise<string[]> => {
    const { body } = await session.call('GET', `/tasks?sortBy=priority&${query}`)
    t.equal(body.total, body.data.length)
    return body.data.map(({ title }: { title: string }) => title)
  }
  const viewers = { owner, ada: ada.session, bob: bob.session }
  const expect = async (titles: { [viewer in keyof typeof viewers]: string[] }, query: string): Promise<void> => {
    for (let round = 0; round < 2; round += 1)
      for (const [name, session] of Object.entries(viewers))
        t.same(await seen(session, query), titles[name as keyof typeof viewers], `${name} ${query}`)
  }
  const start = { owner: ['one', 'two', 'three', 'four'], ada: ['one', 'three'], bob: ['two', 'three'] }
  await expect(start, '')
  await expect({ owner: ['one', 'two', 'three'], ada: ['one', 'three'], bob: ['two', 'three'] }, 'state=assigned')
  await move(tasks[0]._id, 'assign', { assigneeIds: [bob.id] })
  await expect({ ...start, ada: ['three'], bob: ['one', 'two', 'three'] }, '')
  await owner.call('PATCH', `/task/${tasks[2]._id}`, { title: 'last', priority: 9 })
  await expect({ owner: ['one', 'two', 'four', 'last'], ada: ['last'], bob: ['one', 'two', 'last'] }, '')
  await move(tasks[1]._id, 'move', { hubId: other })
  await expect({ owner: ['two'], ada: [], bob: ['two'] }, `hubId=${other}`)
  await owner.call('DELETE', `/task/${tasks[0]._id}`)
  await expect({ owner: ['two', 'four', 'last'], ada: ['last'], bob: ['two', 'last'] }, '')
  const foreign = await task({ title: 'five', priority: 0 })
  await expect({ owner: ['five', 'two', 'four', 'last'], ada: ['last'], bob: ['two', 'last'] }, '')
  t.same((await owner.call('GET', `/task/${foreign._id}`)).body.data.title, 'five')
})
