import { test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { RecordWriter } from '../../../src/features/data/record-writer.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import type { Wrote } from '../../../src/kit/http/route.ts'
import { until } from '../../support/service.ts'
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
    t.match(answer.body.data.check, { state: 'running', records: 300 }, 'not done before it began')
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
  const put = (values: object, caller?: object) => call('PUT', `/data/${wrong._id}`, { values }, caller)
  const { debt, ...others } = wrong.values
  const refusal = { status: 400, body: { errors: [{ path: '/values/debt' }] } }
  t.match(await call('PATCH', `/data/${wrong._id}`, { values: { phone: '5' } }), { status: 200 }, 'what it leaves')
  t.match(await put({ ...others, phone: '6', debt }), refusal, 'a whole record is judged as a whole')
  t.match(
    await put({ ...others, phone: '7' }, hiding(type._id, 'debt')),
    { status: 200 },
    'but for what one cannot see',
  )
  t.match((await call('GET', `/data/${wrong._id}`)).body.data.values, { phone: '7', debt })
  for (const caller of [{}, hiding(type._id, 'debt')])
    t.match(await call('PATCH', `/data/${wrong._id}`, { values: { debt } }, caller), refusal, 'what is named is judged')
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
    { debt: undefined },
    'a field that is made anew is empty',
  )
  await checked(type._id)
  t.equal((await list(`dataTypeId=${type._id}&values.debt=7`)).total, 0)
  t.match(await call('PATCH', `/data/${made._id}`, { values: { debt: 8 } }), { status: 200 })
  t.match((await call('GET', `/data/${made._id}`)).body.data.values, { title: 'Shop', debt: 8 })
  t.equal((await list(`dataTypeId=${type._id}&values.debt=8`)).total, 1)
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
})

test('what only a field named that is gone can be deleted', async (t) => {
  const { call, make, checked, runner } = await openData(t)
  const customers = await make('/data-type', CUSTOMERS)
  const references = ['customer', 'payer'].map((name) => ({ name, type: 'reference', dataTypeId: customers._id }))
  const fields = [{ name: 'id', type: 'text' }, ...references]
  const sites = await make('/data-type', { name: 'Sites', primaryKey: 'id', fields })
  const [shop, bank] = await Promise.all(
    ['C-1', 'C-2'].map((number) => make('/data', { dataTypeId: customers._id, values: { number, name: 'Shop' } })),
  )
  await make('/data', { dataTypeId: sites._id, values: { id: 's1', customer: shop._id, payer: bank._id } })
  t.equal((await call('DELETE', `/data/${shop._id}`)).status, 409)
  t.equal((await call('PATCH', `/data-type/${sites._id}`, { fields: [fields[0], fields[2]] })).status, 200)
  await checked(sites._id)
  t.equal((await call('DELETE', `/data/${bank._id}`)).status, 409, 'another field names it')
  t.equal((await call('DELETE', `/data/${shop._id}`)).status, 200)
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
})

test('values that were equal before their field became unique are listed in whatever case, until they differ', async (t) => {
  const { call, make, list, checked, runner } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const record = (number: string, name: string) =>
    make('/data', { dataTypeId: type._id, values: { number, name } }) as Promise<{ _id: string }>
  const [a, b, c] = [await record('C-1', 'Shop'), await record('C-2', 'SHOP'), await record('C-3', 'shop')]
  await record('C-4', 'Other')
  for (let i = 10; i < 310; i++) await record(`C-${i}`, `N${i}`)
  const far = await record('C-900', 'n10')
  const check = async () => (await call('GET', `/data-type/${type._id}`)).body.data.check
  const change = async (isUnique: boolean) => {
    const fields = CUSTOMERS.fields.map((field) => (field.name === 'name' ? { ...field, unique: isUnique } : field))
    t.equal((await call('PUT', `/data-type/${type._id}`, { ...CUSTOMERS, fields })).status, 200)
    await checked(type._id)
  }
  await change(true)
  t.match(await check(), { records: 305, invalid: 5 }, 'across the pages of a check too')
  t.match(await call('DELETE', `/data/${far._id}`), { status: 200 })
  t.match(await check(), { invalid: 3 }, 'whoever is left alone is off the list')
  t.match(await call('PATCH', `/data/${a._id}`, { values: { name: 'First' } }), { status: 200 })
  t.match(await check(), { invalid: 2 })
  t.match(await call('PATCH', `/data/${b._id}`, { values: { name: 'Shop' } }), { status: 409 })
  t.match(await call('PATCH', `/data/${b._id}`, { values: { debt: 1 } }), { status: 200 })
  t.match(await call('PATCH', `/data/${b._id}`, { values: { debt: 2 } }, hiding(type._id, 'name')), { status: 200 })
  t.match(await check(), { invalid: 2 }, 'what a write leaves is shared as before')
  t.match(await call('PATCH', `/data/${c._id}`, { values: { name: 'Third' } }), { status: 200 })
  t.same((await list(`dataTypeId=${type._id}&invalid=true`)).data, [])
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
  t.match(await call('PATCH', `/data/${c._id}`, { values: { name: 'First' } }), { status: 409 })
  await change(false)
  t.match(await call('PATCH', `/data/${c._id}`, { values: { name: 'First' } }), { status: 200 })
  const byName = CUSTOMERS.fields.map((field) => (field.name === 'name' ? { ...field, unique: false } : field))
  await call('PUT', `/data-type/${type._id}`, { ...CUSTOMERS, fields: byName, primaryKey: 'name' })
  await checked(type._id)
  t.match(await check(), { invalid: 2 }, 'as a primary key too')
})

test('equal records that were decided before their field became unique, and come to the log after it, are listed', async (t) => {
  const { call, make, list, checked, runner, log, clock } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const first = await make('/data', { dataTypeId: type._id, values: { number: 'C-1', name: 'Shop' } })
  const unique = CUSTOMERS.fields.map((field) => (field.name === 'name' ? { ...field, unique: true } : field))
  await call('PUT', `/data-type/${type._id}`, { ...CUSTOMERS, fields: unique })
  await checked(type._id)
  t.same((await list('invalid=true')).data, [])
  // As requests that looked at the type before it changed append them.
  const ids = idSource(0)
  const late = async (number: string, name: string): Promise<string> => {
    const id = ids.next()
    const at = new Date(clock.now()).toISOString()
    const values = { dataTypeId: type._id, values: { number, name }, recordIds: [], uniques: [] }
    const data = encodeJson({ organizationId: 'org-1', values, createdAt: at, at })
    const events = [{ id: ids.next(), type: 'dataCreated', data, isJson: true, metadata: {} }]
    await log.append(`data-${id}`, events, 'none')
    return id
  }
  const second = await late('C-2', 'SHOP')
  const [third, fourth] = [await late('C-3', 'Kiosk'), await late('C-4', 'kiosk')]
  const invalid = async () => (await list('invalid=true')).data.map(({ _id }: { _id: string }) => _id).sort()
  const all = [first._id, second, third, fourth].sort()
  await until('all to be listed', async () => (await invalid()).length === 4)
  t.same(await invalid(), all)
  t.match((await call('GET', `/data-type/${type._id}`)).body.data.check, { state: 'done', records: 4, invalid: 4 })
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
  clock.advance(60_000)
  for (const id of [second, third]) t.match(await call('DELETE', `/data/${id}`), { status: 200 })
  t.same(await invalid(), [], 'until they differ')
})

test('the repeat of a request that was cut short is answered with its record, although the type has changed since', async (t) => {
  const { call, make } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const body = { dataTypeId: type._id, values: { number: 'C-1', name: 'Corner' } }
  const send = (own: number) => call('POST', '/data', body, {}, Buffer.alloc(32, own))
  const { _id } = (await send(1)).body.data
  const fields = type.fields.map((field: { name: string }) =>
    field.name === 'name' ? { ...field, name: 'shopName' } : field,
  )
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields })).status, 200)
  t.match(await send(1), {
    status: 201,
    body: { data: { _id, version: 1, values: { number: 'C-1', shopName: 'Corner' } } },
  })
  t.match(
    await send(2),
    { status: 400, body: { errors: [{ path: '/values/name' }] } },
    'another request is judged by the type',
  )
})

test('a record that a changed type does not allow is mended one field after another, and is listed until it is right', async (t) => {
  const { call, make, list, checked, runner } = await openData(t)
  const shops = await make('/data-type', CUSTOMERS)
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'code', type: 'text' },
    { name: 'customer', type: 'text' },
    { name: 'scan', type: 'file' },
    { name: 'note', type: 'text' },
  ]
  const type = await make('/data-type', { name: 'Orders', primaryKey: 'number', fields })
  const { _id: shopId } = await make('/data', { dataTypeId: shops._id, values: { number: 'C-1', name: 'Shop' } })
  const order = (number: string, values: object) =>
    make('/data', { dataTypeId: type._id, values: { number, ...values } })
  const { _id: id } = await order('O-1', { code: 'abc', customer: shopId.replaceAll('0', '1') })
  const { _id: second } = await order('O-2', { code: '9', customer: shopId })
  const next = fields.map((field) => {
    if (field.name === 'code') return { name: 'code', type: 'number', required: true, unique: true }
    return field.name === 'customer' ? { name: 'customer', type: 'reference', dataTypeId: shops._id } : field
  })
  const wanted = [...next, { name: 'city', type: 'text', required: true }]
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields: wanted })).status, 200)
  await checked(type._id)
  const patch = (values: object, which = id) => call('PATCH', `/data/${which}`, { values })
  const listed = async () => (await list('invalid=true')).data.map(({ _id }: { _id: string }) => _id).sort()
  t.same(await listed(), [id, second].sort())
  t.match(await patch({ note: 'Call first' }), { status: 200 })
  t.match(await patch({ code: 7 }), { status: 200 })
  t.match(
    await patch({ code: 7 }, second),
    { status: 409, body: { errors: [{ path: '/values/code' }] } },
    'it has it now',
  )
  t.match(await patch({ code: null }), { status: 400, body: { errors: [{ path: '/values/code' }] } })
  t.match(await patch({ customer: second }), { status: 400, body: { errors: [{ path: '/values/customer' }] } })
  t.match(await patch({ city: 'Łódź' }), { status: 200 })
  t.same(await listed(), [id, second].sort(), 'it names nothing yet')
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
  t.match(await patch({ customer: shopId }), { status: 200 })
  t.same(await listed(), [second])
  t.match(await call('DELETE', `/data/${shopId}`), { status: 409 }, 'and keeps what it names')
  t.match(await patch({ code: 8, city: 'Radom' }, second), { status: 200 })
  t.same(await listed(), [])
  t.match(await patch({ note: 'x' }, second), { status: 200 })
  t.match(await call('DELETE', `/data/${id}`), { status: 200 })
  t.match(await call('DELETE', `/data/${shopId}`), { status: 409 }, 'also what a change left')
})

test('a file that is attached to a record which names nothing does not take it off the list', async (t) => {
  const office = await openData(t)
  const { call, make, list, checked, clock, settle } = office
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'scan', type: 'file' },
    { name: 'other', type: 'text' },
  ]
  const type = await make('/data-type', { name: 'Orders', primaryKey: 'number', fields })
  const values = { number: 'O-1', other: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d' }
  const { _id } = await make('/data', { dataTypeId: type._id, values })
  const next = [...fields.slice(0, 2), { name: 'other', type: 'reference', dataTypeId: type._id }]
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields: next })).status, 200)
  await checked(type._id)
  t.match(await list('invalid=true'), { total: 1 })
  const now = clock.now()
  const origin = { organizationId: 'org-1', now, ids: idSource(now), metadata: {} }
  const file = { _id: origin.ids.next(), name: 'a', contentType: 'text/plain', size: 1, upload: 'a', createdAt: 'now' }
  const { wrote } = await new RecordWriter(office).attach(origin, _id, 'scan', file)
  await settle(wrote as Wrote, 60_000)
  t.match(await list('invalid=true'), { total: 1, data: [{ values: { scan: [file._id] } }] })
})

test('a value that was an option before is found while a record has it, and is refused from then on', async (t) => {
  const { call, make, list, checked } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const { _id } = await make('/data', { dataTypeId: type._id, values: { number: 'C-1', name: 'One', kind: 'shop' } })
  const fields = CUSTOMERS.fields.map((field) =>
    field.name === 'kind' ? { ...field, options: ['restaurant'] } : field,
  )
  t.equal((await call('PUT', `/data-type/${type._id}`, { ...CUSTOMERS, fields })).status, 200)
  await checked(type._id)
  const shops = () => list(`dataTypeId=${type._id}&values.kind=shop`)
  t.equal((await shops()).total, 1)
  t.equal((await call('PATCH', `/data/${_id}`, { values: { kind: 'restaurant' } })).status, 200)
  t.match(await shops(), { errors: [{ path: '/values.kind', message: 'must be one of restaurant' }] })
})
