import { test } from 'tap'
import { pack } from '../../src/engines/lmdb-tables/layout.ts'
import { NumberRowPacker, sendable } from '../../src/engines/lmdb-tables/number-rows.ts'
import { rowChangesOf } from '../../src/kernel/table.ts'
import { freshlySeeded } from '../support/random.ts'

/** What reads packed rows without unpacking them knows only the forms that `pack` writes. */
test('rows of numbers have the bytes that their objects have', (t) => {
  const random = freshlySeeded(t)
  const any = (below: number): number => Math.floor(random() * below)
  const number = (): number => {
    const whole = any(2 ** any(54)) * (any(2) === 0 ? 1 : -1)
    return [whole, whole, whole / 7, Number.NaN, Number.POSITIVE_INFINITY][any(20) === 0 ? any(5) : any(3)]
  }
  const text = (): string => ['x', 'ü', '€', '🚚'][any(4)].repeat(any([4, 40, 120][any(3)]))
  for (let i = 0; i < 200; i++) {
    const ids = Array.from({ length: 1 + any(20) }, text)
    const fields = Array.from({ length: 1 + any(20) }, (_, place) => `field ${place}${text()}`)
    const scopes = ids.map((_, place) => (place === 0 || any(3) === 0 ? text() : ids[0]))
    const values = Float64Array.from({ length: ids.length * fields.length }, number)
    const rows = { table: 'numbers', ids, scopes, idField: 'the id', scopeField: 'of', fields, values }
    const packer = new NumberRowPacker(rows)
    const packed = ids.map((_, place) => packer.pack(place).toString('hex'))
    const expected = rowChangesOf(rows).map(({ row }) => pack(row).toString('hex'))
    if (packed.join() !== expected.join()) t.same(packed, expected)
  }
  t.pass('200 tables')
  t.end()
})

test('an id that no row can have is refused before anything is stored', (t) => {
  const row = {
    table: 'numbers',
    scopes: ['s'],
    idField: 'id',
    scopeField: 'of',
    fields: [],
    values: new Float64Array(),
  }
  for (const id of ['', 'x'.repeat(501)]) t.throws(() => sendable({ ...row, ids: [id] }), /1 to 500 bytes/)
  t.same(sendable({ ...row, ids: ['x'] }).ids, ['x'])
  t.end()
})
