import { test } from 'tap'
import { withCurrentNames } from '../../../src/features/exports/current-names.ts'
import type { StoredField } from '../../../src/features/data/fields.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ask, call, type Json, signUp, startService } from '../../support/service.ts'

const field = (_id: string, name: string, ...formerNames: string[]): StoredField =>
  ({ _id, no: 1, name, type: 'text', ...(formerNames.length > 0 && { formerNames }) }) as StoredField

const current = (fields: StoredField[], settings: object): Promise<Json> => {
  const tables = { get: async () => ({ fields }) }
  return withCurrentNames(tables as never, 'o', { dataTypeId: 't', ...settings })
}

test('names follow their fields, in columns, titles and filters', async (t) => {
  const fields = [field('number', 'No', 'number'), field('name', 'name'), field('mark', 'version', 'mark')]
  t.match(
    await current(fields, {
      fields: ['number', 'values.number', 'name', '_id', 'mark', 'gone'],
      mapping: { number: 'N', name: 'M', mark: 'V' },
      filter: { 'values.number': 1, 'values.number.from': 2, q: 'number', 'values.gone': 3 },
    }),
    {
      fields: ['No', 'values.No', 'name', '_id', 'values.version', 'gone'],
      mapping: { No: 'N', name: 'M', 'values.version': 'V' },
      filter: { 'values.No': 1, 'values.No.from': 2, q: 'number', 'values.gone': 3 },
    },
    'a field that has the name of a member keeps the prefix',
  )
})

test('filters by fields that were called as the bounds of a filter are follow them', async (t) => {
  const fields = [field('a', 'start', 'from'), field('b', 'end', 'to')]
  t.same((await current(fields, { filter: { 'values.from': 1, 'values.to': 2, 'values.to.from': 3 } })).filter, {
    'values.start': 1,
    'values.end': 2,
    'values.end.from': 3,
  })
})

test('a name that a new field has means that one; one whose field is named beside it stays', async (t) => {
  const fields = [field('a', 'b', 'a'), field('a~3', 'c', 'b')]
  t.same((await current(fields, { fields: ['b'] })).fields, ['b'])
  t.same((await current(fields, { fields: ['a', 'b'] })).fields, ['a', 'b'])
})

test('a config of which a field is renamed exports that field', { timeout: 600_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const make = async (path: string, body: object): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const fields = (price: string): object[] => [
    { name: 'number', type: 'text' },
    { name: price, type: 'number' },
  ]
  const { _id: dataTypeId } = await make('/data-type', { name: 'T', primaryKey: 'number', fields: fields('price') })
  for (const price of [1, 5]) await make('/data', { dataTypeId, values: { number: `n${price}`, price } })
  const config = await make('/export-config', {
    ...{ name: 'C', target: 'data', dataTypeId, fields: ['number', 'price'], format: 'csv' },
    ...{ mapping: { number: 'No.' }, filter: { 'values.price.from': 2 } },
  })
  const path = `/export-config/${config._id}`
  await ask(service, 'PATCH', `/data-type/${dataTypeId}`, { token, body: { fields: fields('cost') } })
  const exported = async (body: object = {}): Promise<string> =>
    (await call(service, 'POST', '/data/export', { token, body: { exportConfigId: config._id, ...body } })).text
  t.equal(await exported(), 'No.,cost\r\nn5,5\r\n')
  t.equal(await exported({ mapping: { cost: 'Cost' } }), 'No.,Cost\r\nn5,5\r\n')
  t.match(await exported({ fields: ['price'] }), /"invalid"/, 'a request names what there is')
  const shown = (await ask(service, 'GET', path, { token })).data
  t.match(shown, { fields: ['number', 'cost'], filter: { 'values.cost.from': 2 } })
  t.match(await call(service, 'PUT', path, { token, body: { ...shown, format: 'json' } }), { status: 200 })
  const asBefore = { ...config, format: 'csv', fields: ['price'] }
  delete asBefore.version
  t.match((await ask(service, 'PUT', path, { token, body: asBefore })).data, { fields: ['cost'] })
  t.equal(await exported(), 'cost\r\n5\r\n')
})
