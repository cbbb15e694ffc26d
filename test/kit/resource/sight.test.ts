import { test } from 'tap'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import type { Row } from '../../../src/kernel/table.ts'
import { answerList } from '../../../src/kit/http/answer-list.ts'
import { seesRow } from '../../../src/kit/http/list-query.ts'
import { tableOf } from '../../../src/kit/resource/rows.ts'
import { listShape } from '../../../src/kit/resource/rows.ts'
import { resources } from '../../../src/product-parts.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'
import { freshlySeeded } from '../../support/random.ts'

const ROWS = 120
const CALLERS = 25
const HUBS = ['h1', 'h2', 'h3']
const PEOPLE = ['u1', 'u2', 't1', 't2']
/** What an audience may go by: people and teams, or kinds that a permission opens. */
const KEYS = [...PEOPLE, 'task', 'tracker']

test('a list has the rows that its caller would be shown one by one, for every resource that is limited', async (t) => {
  const random = freshlySeeded(t)
  const some = (from: readonly string[]): string[] => from.filter(() => random() < 0.4)
  const limited = resources.all().filter(({ hubField, audience }) => hubField !== undefined || audience !== undefined)
  t.ok(limited.length >= 6 && limited.some(({ audience }) => audience !== undefined), 'there are such resources')
  const services = await openServices(folderOf(t))
  t.teardown(() => services.close())
  const callerOf = (): UserCaller =>
    ({
      organizationId: 'org',
      userId: PEOPLE[Math.floor(random() * 2)],
      hubIds: random() < 0.2 ? 'all' : some(HUBS),
      teamIds: some(['t1', 't2']),
      permissions: new Set(some(['dispatch/task', 'edit/tracker'])),
      permissionDetails: [],
    }) as unknown as UserCaller
  for (const declaration of limited) {
    const { hubField = '', audience } = declaration
    const table = tableOf(declaration)
    await services.tables.declare(table)
    const rows: Row[] = Array.from({ length: ROWS }, (_, i) => ({
      _id: hubField === '_id' && i < HUBS.length ? HUBS[i] : `r${i}`,
      ...(hubField !== '_id' && random() < 0.9 && { [hubField]: random() < 0.5 ? some(HUBS) : some(HUBS)[0] }),
      ...(audience !== undefined && { [audience.field]: some(KEYS) }),
    }))
    await services.tables.commit(rows.map((row) => ({ table: table.name, scope: 'org', id: row._id as string, row })))
    let seen = 0
    for (let i = 0; i < CALLERS; i++) {
      const caller = callerOf()
      const expected = rows.filter((row) => seesRow(caller, row, declaration)).map(({ _id }) => _id)
      const request = { tables: services.tables, scope: 'org', caller, query: { limit: 500 }, path: '/' }
      const { body } = (await answerList(listShape(declaration), request)) as { body: { data: Row[]; total: number } }
      t.same(body.data.map(({ _id }) => _id).sort(), expected.sort(), `${declaration.plural}, caller ${i}`)
      t.equal(body.total, expected.length)
      seen += expected.length
    }
    t.ok(seen > 0 && seen < CALLERS * ROWS, `some rows of ${declaration.plural} are seen, some are not`)
  }
})
