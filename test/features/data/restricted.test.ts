import { test } from 'tap'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { CUSTOMERS, hiding, openData } from './open-data.ts'

test('a field that a role hides is in no read, list, filter, sort or search, and writes keep it', async (t) => {
  const { call, make, list } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const open = await make('/data-type', { ...CUSTOMERS, name: 'Open' })
  const values = { number: 'C-1', name: 'Shop', phone: 'secret', debt: 7 }
  const made = await make('/data', { dataTypeId: type._id, values })
  await make('/data', { dataTypeId: open._id, values })
  const clerk = hiding(type._id, 'phone', 'debt')
  const of = `dataTypeId=${type._id}`
  t.same((await call('GET', `/data/${made._id}`, undefined, clerk)).body.data.values, {
    number: 'C-1',
    name: 'Shop',
    active: true,
  })
  t.same((await call('GET', '/data/type/customers/C-1', undefined, clerk)).body.data.values, {
    number: 'C-1',
    name: 'Shop',
    active: true,
  })
  const all = await list('sortBy=createdAt', clerk)
  t.same(
    all.data.map((row: { values: object }) => Object.keys(row.values).includes('phone')).sort(),
    [false, true],
    'each by its own type',
  )
  for (const url of [
    `/data/${made._id}?fields=phone,name,values.debt`,
    `/data?${of}&fields=phone,values.debt`,
    `/data/type/Customers/C-1?fields=debt,phone`,
  ])
    t.same((await call('GET', url, undefined, clerk)).body.fields?.sort(), ['debt', 'phone'], url)
  for (const query of ['values.phone=secret', 'values.debt.from=1', 'values.debt.to=9', 'sortBy=values.debt'])
    t.match(
      await call('GET', `/data?${of}&${query}`, undefined, clerk),
      { status: 403, body: { fields: [/^(phone|debt)$/] } },
      query,
    )
  t.match(await list(`${of}&q=secret`, clerk), { total: 0, data: [] })
  t.match(await list(`${of}&q=shop`, clerk), { total: 1 })
  t.match(await list('q=secret', clerk), { total: 1 }, 'of the type that hides nothing')

  const put = await call('PUT', `/data/${made._id}`, { values: { number: 'C-1', name: 'Shop 2' } }, clerk)
  t.same(put.body.data.values, { number: 'C-1', name: 'Shop 2', active: true }, 'answers to writes omit it')
  t.match(
    (await call('GET', `/data/${made._id}`)).body.data.values,
    { phone: 'secret', debt: 7, name: 'Shop 2' },
    'it keeps its value',
  )
  const patched = await call('PATCH', `/data/${made._id}`, { values: { debt: 9 } }, clerk)
  t.match(patched, { status: 200, body: { data: { values: { debt: undefined } } } }, 'writes are not affected')
  t.match((await call('GET', `/data/${made._id}`)).body.data.values, { debt: 9 })
  const created = await call(
    'POST',
    '/data',
    { dataTypeId: type._id, values: { number: 'C-2', name: 'N', phone: 'x' } },
    clerk,
  )
  t.match(created, { status: 201, body: { data: { values: { number: 'C-2', phone: undefined } } } })
})

test('a role that hides the primary key finds nothing by it', async (t) => {
  const { call, make } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const made = await make('/data', { dataTypeId: type._id, values: { number: 'C-1', name: 'Shop' } })
  const clerk = hiding(type._id, 'number')
  t.equal((await call('GET', '/data/type/customers/C-1', undefined, clerk)).status, 404)
  t.match(await call('GET', `/data/type/customers/${made._id}`, undefined, clerk), {
    status: 200,
    body: { data: { values: { number: undefined, name: 'Shop' } } },
  })
})

test('a list that is asked for again shows each viewer what is theirs, as it is now', async (t) => {
  const { call, make, list } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const record = await make('/data', {
    dataTypeId: type._id,
    values: { number: 'C-1', name: 'Shop', phone: 'secret', debt: 7 },
  })
  const viewers: [Partial<UserCaller>, string[]][] = [
    [{}, ['debt', 'name', 'number', 'phone']],
    [hiding(type._id, 'phone', 'debt'), ['name', 'number']],
    [hiding(type._id, 'phone'), ['debt', 'name', 'number']],
    [{ ...hiding(type._id, 'debt'), userId: 'another' }, ['name', 'number', 'phone']],
  ]
  const shown = async (query: string, viewer: Partial<UserCaller>): Promise<object> => {
    const { data } = await list(`dataTypeId=${type._id}&${query}`, viewer)
    t.equal(data.length, 1)
    const { active: _active, ...values } = data[0].values
    return values
  }
  for (let round = 0; round < 3; round += 1)
    for (const [viewer, names] of viewers) {
      t.same(Object.keys(await shown('sortBy=createdAt', viewer)).sort(), names)
      t.same(await shown('fields=values.name', viewer), { name: 'Shop' })
    }
  await call('PATCH', `/data/${record._id}`, { values: { name: 'Shop 2' } })
  for (const [viewer] of viewers) t.match(await shown('sortBy=createdAt', viewer), { name: 'Shop 2' })
  // The record stays as it is: its type alone says what its values are called.
  const fields = type.fields.map((field: { name: string }) =>
    field.name === 'name' ? { ...field, name: 'title' } : field,
  )
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields })).status, 200)
  for (const [viewer] of viewers) t.match(await shown('sortBy=createdAt', viewer), { title: 'Shop 2', name: undefined })
  t.equal((await call('DELETE', `/data/${record._id}`)).status, 200)
  for (const [viewer] of viewers)
    t.match(await list(`dataTypeId=${type._id}&sortBy=createdAt`, viewer), { total: 0, data: [] })
})

test('no write tells whether a hidden value was guessed', async (t) => {
  const { call, make, checked } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const values = { number: 'C-1', name: 'Shop', phone: 'secret' }
  const made = await make('/data', { dataTypeId: type._id, values })
  const clerk = { ...hiding(type._id, 'phone'), userId: 'clerk' }
  const repeat = async (phone: string, caller: Partial<UserCaller>) => {
    const { _id, dataTypeId } = made
    return (await call('POST', '/data', { _id, dataTypeId, values: { ...values, phone } }, caller)).status
  }
  t.same([await repeat('wrong', clerk), await repeat('secret', clerk)], [409, 409], 'a create of somebody else')
  t.equal(await repeat('secret', {}), 201, 'whoever sees all may repeat it')
  const own = { ...values, _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b61' }
  const body = { _id: own._id, dataTypeId: type._id, values: { number: 'C-2', name: 'Own', phone: 'mine' } }
  for (const _ of [1, 2]) t.equal((await call('POST', '/data', body, clerk)).status, 201, 'and each what is their own')

  const rules = (change: object) => ({
    fields: type.fields.map((field: { name: string }) => (field.name === 'phone' ? { ...field, ...change } : field)),
  })
  const amend = (body: object) => call('PATCH', `/data-type/${type._id}`, body, clerk)
  for (const change of [{ pattern: '^s' }, { unique: false }, { type: 'number' }])
    t.match(await amend(rules(change)), { status: 403, body: { fields: ['phone'] } }, JSON.stringify(change))
  t.match(await amend({ primaryKey: 'phone' }), { status: 403, body: { fields: ['phone'] } }, 'nor made the key')
  const without = type.fields.filter(({ name }: { name: string }) => name !== 'phone')
  t.match(await amend({ fields: without }), { status: 403, body: { fields: ['phone'] } }, 'nor taken away')
  t.equal((await amend({ ...rules({ name: 'call', label: 'Call' }), type: 'other' })).status, 200, 'but be renamed')
  await checked(type._id)
})

test('a hidden value that another record has too is for others to put right', async (t) => {
  const { call, make, checked } = await openData(t)
  const field = { name: 'code', type: 'text' }
  const type = await make('/data-type', { ...CUSTOMERS, name: 'Late', fields: [...CUSTOMERS.fields, field] })
  const of = (number: string) => ({ dataTypeId: type._id, values: { number, name: 'N', code: 'same' } })
  const two = [await make('/data', of('C-1')), await make('/data', of('C-2'))]
  await call('PATCH', `/data-type/${type._id}`, { fields: [...type.fields.slice(0, -1), { ...field, unique: true }] })
  await checked(type._id)
  const clerk = hiding(type._id, 'code')
  for (const { _id } of two)
    t.equal((await call('PATCH', `/data/${_id}`, { values: { name: 'New' } }, clerk)).status, 200)
  t.equal((await call('PATCH', `/data/${two[0]._id}`, { values: { code: 'same' } })).status, 409, 'nobody may write it')
})
