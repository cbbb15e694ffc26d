import { test } from 'tap'
import type { TableStore } from '../../../src/engines/table-store.ts'
import type { Row } from '../../../src/kernel/table.ts'
import { recentRows } from '../../../src/reactors/imports/recent-rows.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const open = (answer: (id: string) => Promise<Row | undefined>) => {
  const asked: string[] = []
  const clock = new FakeClock()
  const get = (_table: string, _scope: string, id: string) => {
    asked.push(id)
    return answer(id)
  }
  const tables = recentRows({ get } as unknown as TableStore, clock)
  return { asked, clock, row: (id: string) => tables.get('hubs', 'office', id) }
}

test('rows of a file that ask at once read a row once, and again after a second', async (t) => {
  const { asked, clock, row } = open(async (id) => ({ id }))
  t.same(await Promise.all([row('a'), row('a'), row('b')]), [{ id: 'a' }, { id: 'a' }, { id: 'b' }])
  await row('a')
  t.same(asked, ['a', 'b'])
  clock.advance(1_001)
  await row('a')
  t.same(asked, ['a', 'b', 'a'])
})

test('an absent row, and one that could not be read, are asked for again', async (t) => {
  const answers = [async () => undefined, () => Promise.reject(new Error('down')), async () => ({ id: 'a' })]
  const { asked, row } = open(async () => answers.shift()?.())
  t.equal(await row('a'), undefined)
  await t.rejects(row('a'), { message: 'down' })
  t.same(await row('a'), { id: 'a' })
  t.same(asked, ['a', 'a', 'a'])
})
