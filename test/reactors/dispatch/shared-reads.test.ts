import { test } from 'tap'
import { tablesWith } from '../../../src/engines/table-store.ts'
import { encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import { AskOnce, sharedReads } from '../../../src/reactors/dispatch/shared-reads.ts'
import { SubjectRows } from '../../../src/reactors/dispatch/subject-rows.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { ORG } from './world.ts'

test('who asks at the same time shares an answer, which is never older than the question', async (t) => {
  let now = 1
  let asked = 0
  const once = new AskOnce<number>()
  const ask = (key = 'role'): Promise<number> =>
    once.ask(key, async () => {
      asked++
      return now
    })
  const first = [ask(), ask(), ask('user')]
  now = 2 // decided after they asked: they may see it, and nobody later may miss it
  const late = ask()
  t.strictSame(await Promise.all([...first, late]), [2, 2, 2, 2])
  t.equal(asked, 2)
  now = 3
  t.equal(await ask(), 3, 'nothing is kept')

  const failing = new AskOnce<number>()
  let tries = 0
  const fail = (): Promise<number> =>
    failing.ask('x', async () => (tries++ === 0 ? Promise.reject(new Error('down')) : 7))
  const refused = await Promise.allSettled([fail(), fail()])
  t.strictSame(
    refused.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.equal(await fail(), 7, 'a failure is not kept either')
})

test('a right that was taken between two reads is gone in the second', async (t) => {
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  await services.tables.declare({ name: 'rights', version: 1 })
  const put = (permissions: string[] | undefined) =>
    services.tables.commit([
      { table: 'rights', scope: ORG, id: 'r', row: permissions === undefined ? null : { permissions } },
    ])
  let reads = 0
  const { tables } = services
  const counted = tablesWith(tables, {
    get: (...asked) => {
      reads++
      return tables.get(...asked)
    },
    getMany: (...asked) => {
      reads++
      return tables.getMany(...asked)
    },
  })
  const shared = sharedReads(counted)
  await put(['edit/task'])
  // Another part of the dispatcher, over the same tables.
  const others = sharedReads(counted)
  const both = await Promise.all([shared.get('rights', ORG, 'r'), others.getMany('rights', ORG, ['r'])])
  t.match(both, [{ permissions: ['edit/task'] }, [{ permissions: ['edit/task'] }]])
  t.equal(reads, 1)
  await put([])
  t.match(await shared.get('rights', ORG, 'r'), { permissions: [] })
  await put(undefined)
  t.strictSame(await shared.getMany('rights', ORG, ['r', 'none']), [undefined, undefined])
  t.equal(await shared.get('rights', 'another', 'r'), undefined)
})

test('a task is read again once it has changed, and is of its own organization alone', async (t) => {
  const stream = 'task-1'
  const events: RecordedEvent[] = []
  let reads = 0
  const add = (title: string, more: object = {}): RecordedEvent => {
    const revision = events.length
    const values = { title, ...more }
    const data = encodeJson({ organizationId: ORG, values, createdAt: 'c', at: `a${revision}` })
    const common = { id: `e${revision}`, type: 'taskChanged', isJson: true, metadata: {}, loggedAt: 0 }
    const event = { ...common, data, stream, revision, position: revision * 10 }
    events.push(event)
    return event
  }
  const rows = new SubjectRows({
    head: async () => events.length - 1,
    read: async (_, from, limit) => {
      reads++
      return from === 'end' ? events.slice(-1) : events.slice(from, from + limit)
    },
  })
  const note = (event: RecordedEvent): unknown => rows.note(event, JSON.parse(Buffer.from(event.data).toString()))
  note(add('one'))
  t.match(await rows.now(stream, ORG), { _id: '1', title: 'one', version: 1, updatedAt: 'a0' })
  t.equal(reads, 0)
  note(add('two'))
  t.match(await rows.at(stream, ORG, 0), { title: 'one', version: 1 }, 'what was before it')
  t.equal(await rows.now(stream, 'another'), undefined)
  t.equal(reads, 0)
  add('three') // somebody else's, not heard yet
  t.match(await rows.now(stream, ORG), { title: 'three', version: 3 })
  t.equal(reads, 1)
  t.match(await rows.at(stream, ORG, 1), { title: 'two' })
  note(events[0])
  t.match(await rows.now(stream, ORG), { title: 'three' }, 'an older event takes nothing back')
  note(add('large', { text: 'x'.repeat(10_000) }))
  const before = reads
  t.match(await rows.now(stream, ORG), { title: 'large', version: 4 })
  t.equal(reads, before + 1, 'what is large is not kept')
  events.length = 0
  t.equal(await rows.now(stream, ORG), undefined, 'nor what was erased')
})
