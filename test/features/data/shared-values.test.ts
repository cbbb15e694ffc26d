import { test } from 'tap'
import type { StoredRow, TableStore } from '../../../src/engines/table-store.ts'
import { RECORDS_CHECKED } from '../../../src/features/data/events.ts'
import { record } from '../../../src/features/data/record.ts'
import { encodeJson, type RecordedEvent } from '../../../src/kernel/event.ts'
import type { Json } from '../../../src/kernel/json.ts'
import { CHECKS } from '../../../src/features/data/views.ts'
import type { Row } from '../../../src/kernel/table.ts'
import { RowsOverlay } from '../../../src/kit/consumers/projection-overlay.ts'
import { seeded } from '../../support/random.ts'

const SEEDS = 60
const ORGANIZATION = 'org-1'
const TYPE = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d'

/** Tables that keep rows by name, and count what is asked of them. */
const memoryTables = () => {
  const rows = new Map<string, { table: string; id: string; row: Row }>()
  const counts = { finds: 0 }
  const keyOf = (table: string, id: string) => `${table} ${id}`
  const tables = {
    get: async (table: string, _scope: string, id: string) => rows.get(keyOf(table, id))?.row,
    find: async (table: string, _scope: string, { where = {}, limit, after }: Parameters<TableStore['find']>[2]) => {
      counts.finds++
      const [[field, value]] = Object.entries(where)
      const found = [...rows.values()]
        .filter((one) => one.table === table && [one.row[field]].flat().includes(value as Json))
        .sort((one, other) => (one.id < other.id ? -1 : 1))
      const from = after === undefined ? 0 : Number(after)
      const page: StoredRow[] = found.slice(from, from + limit).map(({ id, row }) => ({ scope: _scope, id, row }))
      return { rows: page, next: from + limit < found.length ? String(from + limit) : null }
    },
  } as unknown as Pick<TableStore, 'get' | 'find'>
  const store = (overlay: RowsOverlay) => {
    for (const { table, id, row } of overlay.take())
      if (row === null) rows.delete(keyOf(table, id))
      else rows.set(keyOf(table, id), { table, id, row })
  }
  const all = () => Object.fromEntries([...rows].sort(([one], [other]) => (one < other ? -1 : 1)))
  return { tables, store, all, counts }
}

/** The rows that a log leaves when so many events are stored at once, the next ones on top of those that are under way. */
const rowsAfter = async (events: readonly RecordedEvent[], portion: number) => {
  const { tables, store, all, counts } = memoryTables()
  let under: RowsOverlay | undefined
  for (let from = 0; from < events.length; from += portion) {
    const overlay = new RowsOverlay(tables, '', under)
    for (const event of events.slice(from, from + portion)) await record.rows.apply(event, overlay)
    if (under !== undefined) store(under)
    under = overlay
  }
  if (under !== undefined) store(under)
  return { rows: all(), finds: counts.finds }
}

/** Writes a log: a type, its records, and checks of them. */
const logOf = () => {
  const events: RecordedEvent[] = []
  const revisions = new Map<string, number>()
  let loggedAt = 1_000
  const add = (stream: string, type: string, data: object): void => {
    const revision = (revisions.get(stream) ?? -1) + 1
    revisions.set(stream, revision)
    const common = {
      organizationId: ORGANIZATION,
      createdAt: '2026-01-01T00:00:00.000Z',
      at: '2026-01-01T00:00:00.000Z',
    }
    events.push({
      ...{ id: `${stream} ${revision}`, stream, revision, type, position: events.length, loggedAt: loggedAt++ },
      ...{ data: encodeJson({ ...common, ...data }), isJson: true, metadata: {} },
    } as RecordedEvent)
  }
  const typed = (isUnique: boolean) => ({
    values: {
      name: 'Customers',
      primaryKey: 'number',
      fields: [
        { _id: 'number', no: 1, name: 'number', type: 'text', slot: 0 },
        { _id: 'name', no: 2, name: 'name', type: 'text', slot: 1, ...(isUnique && { unique: true }) },
      ],
    },
  })
  const valued = (number: string, name: string) => ({
    values: { dataTypeId: TYPE, values: { number, name }, recordIds: [], uniques: [{ key: `${TYPE}/number` }] },
  })
  return {
    events,
    pass: (ms: number): void => void (loggedAt += ms),
    type: (event: 'Created' | 'Changed', isUnique: boolean) =>
      add(`dataType-${TYPE}`, `dataType${event}`, typed(isUnique)),
    write: (event: 'Created' | 'Changed' | 'Deleted', id: string, name: string) =>
      add(`data-${id}`, `data${event}`, valued(id, name)),
    check: (ids: readonly string[], isLast: boolean, invalidIds: readonly string[] = []) =>
      add(`dataCheck-${TYPE}`, RECORDS_CHECKED, {
        ...{ dataTypeId: TYPE, version: (revisions.get(`dataType-${TYPE}`) ?? 0) + 1, ids, invalidIds, isLast },
      }),
  }
}

test('the same log marks the same records as sharing a value, however much of it is stored at once', async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seeded(seed)
    const log = logOf()
    const names = new Map<string, string>()
    const pick = <One>(ones: readonly One[]): One => ones[Math.floor(random() * ones.length)]
    let made = 0
    const writeOne = (): void => {
      const id = pick([...names.keys(), ''])
      const name = pick(['a', 'b', 'c', 'd', 'A'])
      if (id === '') {
        names.set(`r${++made}`, name)
        log.write('Created', `r${made}`, name)
      } else if (random() < 0.3) {
        log.write('Deleted', id, names.get(id) as string)
        names.delete(id)
      } else {
        names.set(id, name)
        log.write('Changed', id, name)
      }
    }
    log.type('Created', false)
    for (let i = 0; i < 16; i++) writeOne()
    log.type('Changed', true)
    const asked = [...names.keys()]
    while (asked.length > 0) {
      for (let i = 0; i < 4; i++) if (random() < 0.8) writeOne()
      const ids = asked.splice(0, 3)
      log.check(ids, asked.length === 0)
    }
    for (let i = 0; i < 8; i++) writeOne()
    const { rows } = await rowsAfter(log.events, 1)
    for (const portion of [2, 7, 1_000])
      t.same((await rowsAfter(log.events, portion)).rows, rows, `seed ${seed}, ${portion}`)
    const isShared = (id: string): boolean =>
      [...names].some(([other, name]) => other !== id && name.toLowerCase() === names.get(id)?.toLowerCase())
    t.same(sharedIn(rows), [...names.keys()].filter(isShared).sort(), `seed ${seed}`)
    const check = Object.values(rows).find(({ table }) => table === CHECKS.name)?.row
    t.equal(check?.hasShared === true, sharedIn(rows).length > 0, `seed ${seed}: as long as some share one`)
  }
})

test('of many that share a value all are marked, those of other pages too, without walking over them for each', async (t) => {
  const log = logOf()
  const ids = Array.from({ length: 400 }, (_, i) => `r${String(i).padStart(4, '0')}`)
  log.type('Created', false)
  for (const id of ids) log.write('Created', id, 'a')
  log.type('Changed', true)
  log.check(ids.slice(0, 1), false)
  for (let from = 1; from < ids.length; from += 100) log.check(ids.slice(from, from + 100), from + 100 >= ids.length)
  for (const portion of [1, 200]) {
    const { rows, finds } = await rowsAfter(log.events, portion)
    t.same(sharedIn(rows), ids)
    t.ok(2 * finds <= 3 * ids.length, `${finds} questions for the value and the key of each`)
  }
})

const sharedIn = (rows: Awaited<ReturnType<typeof rowsAfter>>['rows']): string[] =>
  Object.values(rows).flatMap(({ id, row }) => (row.isShared === true ? [id] : []))
