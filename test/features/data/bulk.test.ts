import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { CUSTOMERS, hiding, openData } from './open-data.ts'

const record = (number: string, more: object = {}) => ({ values: { number, name: `Shop ${number}`, ...more } })

test('of many records at once each is made or refused by itself', async (t) => {
  const { call, make, list } = await openData(t)
  const { _id: dataTypeId } = await make('/data-type', CUSTOMERS)
  const bulk = (mode: string, records: unknown[], caller = {}, seed?: Buffer) =>
    call('POST', '/data/bulk', { dataTypeId, mode, records }, caller, seed)
  const seed = Buffer.alloc(32, 5)
  const _id = randomUUID()
  const records = [
    record('C-1', { phone: '1' }),
    record('C-1'),
    { values: { number: 'no' } },
    null,
    { values: {}, more: 1 },
    record('C-2', { phone: '1' }),
    { _id, ...record('C-3', { debt: 4 }) },
  ]
  const first = await bulk('insert', records, {}, seed)
  t.equal(first.status, 200)
  t.same(first.body.data.created.length, 2)
  t.notOk('changed' in first.body.data)
  t.match(first.body.data.rejected, [
    { index: 1, code: 'key_in_use' },
    { index: 2, code: 'invalid' },
    { index: 3, code: 'invalid' },
    { index: 4, code: 'invalid' },
    { index: 5, code: 'key_in_use' },
  ])
  t.same((await bulk('insert', records, {}, seed)).body.data.created, first.body.data.created, 'a repeat')

  const upsert = [record('C-1', { debt: 9 }), record('C-4'), record('C-4', { debt: 2 }), { _id, values: { debt: 5 } }]
  const second = (await bulk('upsert', [...upsert, { values: { name: 'x' } }], {}, Buffer.alloc(32, 6))).body.data
  t.same(second.changed, [first.body.data.created[0], second.created[0], _id])
  t.equal(second.created.length, 1)
  t.match(second.rejected, [{ index: 4, code: 'invalid', message: /number/ }])
  const { data } = await list(`dataTypeId=${dataTypeId}&sortBy=values.number`)
  t.match(
    data.map(({ values }: { values: object }) => values),
    [
      { number: 'C-1', debt: 9, phone: '1' },
      { number: 'C-3', debt: 5 },
      { number: 'C-4', debt: 2 },
    ],
    'what an upsert leaves out stays, and the later of two counts',
  )
  const repeat = (await bulk('upsert', upsert, {}, Buffer.alloc(32, 6))).body.data
  t.same(repeat.created, second.created, 'a repeat of an upsert says again what it made')
  const blind = (await bulk('upsert', [record('C-1')], hiding(dataTypeId, 'number'))).body.data
  t.match(blind, { created: [], changed: [], rejected: [{ index: 0, code: 'forbidden' }] })
  t.match(await call('POST', '/data/bulk', { dataTypeId: _id, mode: 'insert', records }), {
    status: 400,
    body: { errors: [{ path: '/dataTypeId' }] },
  })
  t.equal((await bulk('replace', records)).status, 400)
})
