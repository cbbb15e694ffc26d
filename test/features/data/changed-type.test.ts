import { test } from 'tap'
import { CUSTOMERS, hiding, openData } from './open-data.ts'

test('a changed type checks its records, lists those that do not hold any more, and finds by its new fields', async (t) => {
  const { call, make, list, checked } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  for (let i = 0; i < 300; i++)
    await call('POST', '/data', { dataTypeId: type._id, values: { number: `C-${i}`, name: `N${i % 7}`, debt: i } })
  const other = { ...CUSTOMERS, name: 'Others' }
  const second = await make('/data-type', other)
  const change = async (fields: object[]) => {
    const answer = await call('PUT', `/data-type/${type._id}`, { ...CUSTOMERS, fields })
    t.equal(answer.status, 200)
    t.match(answer.body.data.check, { records: 300 })
    await checked(type._id)
    return (await call('GET', `/data-type/${type._id}`)).body.data.check
  }
  t.same(await change(CUSTOMERS.fields.map((field) => (field.name === 'debt' ? { ...field, max: 199 } : field))), {
    state: 'done',
    records: 300,
    invalid: 100,
  })
  t.equal((await list(`dataTypeId=${type._id}&invalid=true`)).total, 100)
  t.equal((await list('invalid=true')).total, 100)
  const [first] = (await list(`dataTypeId=${type._id}&invalid=true`)).data
  t.match(await call('PATCH', `/data/${first._id}`, { values: { debt: 5 } }), { status: 200 })
  t.equal((await list('invalid=true')).total, 99, 'a record that is mended is off the list')
  const [wrong] = (await list(`dataTypeId=${type._id}&invalid=true`)).data
  const rename = (caller?: object) =>
    call('PATCH', `/data/${wrong._id}`, { values: { name: 'N3', phone: '5' } }, caller)
  t.match(await rename(), { status: 400, body: { errors: [{ path: '/values/debt' }] } }, 'all is judged that one sees')
  t.match(await rename(hiding(type._id, 'debt')), { status: 200 }, 'not what one could not put right')
  t.match((await call('GET', `/data/${wrong._id}`)).body.data.values, { phone: '5', debt: wrong.values.debt })
  t.match(
    await call('PATCH', `/data/${wrong._id}`, { values: { debt: 1_000 } }, hiding(type._id, 'debt')),
    { status: 400 },
    'but what is written is',
  )
  t.equal((await list('invalid=true')).total, 99, 'and it stays on the list')
  t.same(await change([...CUSTOMERS.fields, { name: 'colour', type: 'text', required: true }]), {
    state: 'done',
    records: 300,
    invalid: 300,
  })
  const unique = CUSTOMERS.fields.map((field) => (field.name === 'name' ? { ...field, unique: true } : field))
  t.match(await change(unique), { invalid: 300 }, 'values that are not unique')
  t.match(
    await call('POST', '/data', { dataTypeId: type._id, values: { number: 'C-1000', name: 'n3' } }),
    { status: 409 },
    'nor may there be one more',
  )
  t.same(await change(CUSTOMERS.fields), { state: 'done', records: 300, invalid: 0 })
  const typed = CUSTOMERS.fields.map((field) => (field.name === 'debt' ? { name: 'debt', type: 'text' } : field))
  t.match(await change(typed), { invalid: 300 }, 'numbers are no texts')
  t.match((await call('GET', `/data-type/${second._id}`)).body.data.check, { state: 'done', records: 0 })
})

test('a field that is renamed keeps its values, its index and its place in the roles that hide it', async (t) => {
  const { call, make, list, checked, runner } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const made = await make('/data', {
    dataTypeId: type._id,
    values: { number: 'C-1', name: 'Shop', phone: '123', debt: 7 },
  })
  const renamed = CUSTOMERS.fields.map((field) =>
    field.name === 'phone'
      ? { ...field, name: 'mobile' }
      : field.name === 'number'
        ? { ...field, name: 'code' }
        : field,
  )
  const answer = await call('PATCH', `/data-type/${type._id}`, { fields: renamed })
  t.match(answer, { status: 200, body: { data: { primaryKey: 'code' } } })
  t.match((await call('GET', `/data/${made._id}`)).body.data.values, {
    code: 'C-1',
    mobile: '123',
    debt: 7,
    phone: undefined,
  })
  t.equal((await list(`dataTypeId=${type._id}&values.mobile=123`)).total, 1)
  t.match((await call('GET', `/data/${made._id}`, undefined, hiding(type._id, 'phone'))).body.data.values, {
    mobile: undefined,
    debt: 7,
  })
  t.match(await call('GET', `/data/${made._id}?fields=mobile`, undefined, hiding(type._id, 'phone')), {
    status: 403,
    body: { fields: ['mobile'] },
  })
  await checked(type._id)

  const { fields } = (await call('GET', `/data-type/${type._id}`)).body.data
  const swapped = fields.map((field: { name: string }) =>
    field.name === 'name' ? { ...field, name: 'title' } : field.name === 'mobile' ? { ...field, name: 'name' } : field,
  )
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields: swapped.reverse() })).status, 200)
  t.match(
    (await call('GET', `/data/${made._id}`)).body.data.values,
    { title: 'Shop', name: '123' },
    'by _id, in any order',
  )
  await checked(type._id)
  const gone = swapped.filter((field: { name: string }) => field.name !== 'debt')
  await call('PATCH', `/data-type/${type._id}`, { fields: gone })
  t.match((await call('GET', `/data/${made._id}`)).body.data.values, { debt: undefined })
  await call('PATCH', `/data-type/${type._id}`, { fields: [...gone, { name: 'debt', type: 'number' }] })
  t.match(
    (await call('GET', `/data/${made._id}`)).body.data.values,
    { debt: 7 },
    'a field that comes back brings its values',
  )
  await checked(type._id)
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
})
