import { test } from 'tap'
import { dataType } from '../../../src/features/data/data-type.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { until } from '../../support/service.ts'
import { CUSTOMERS, openData } from './open-data.ts'

test('a record holds what its data type says, and a fault names its field', async (t) => {
  const { call, make } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  t.match(type, { name: 'Customers', primaryKey: 'number', check: { state: 'done', records: 0, invalid: 0 } })
  t.same(Object.keys(type.fields[0]).sort(), ['_id', 'name', 'pattern', 'type'])
  const values = {
    number: 'C-1',
    name: 'Corner',
    kind: 'shop',
    tags: ['vip', 'cash'],
    debt: 12.5,
    since: '2026-02-28',
    opens: '07:30',
    seenAt: '2026-02-28T10:00:00+02:00',
    place: { lat: 52, lng: 21 },
  }
  const made = await make('/data', { dataTypeId: type._id, values })
  t.match(made, {
    dataTypeId: type._id,
    version: 1,
    values: { ...values, seenAt: '2026-02-28T08:00:00.000Z', active: true },
  })
  t.same((await call('GET', `/data/${made._id}`)).body.data, made)
  const refused = async (bad: object, path: string) =>
    t.match(
      await call('POST', '/data', { dataTypeId: type._id, values: { ...values, number: 'C-9', ...bad } }),
      { status: 400, body: { code: 'invalid', errors: [{ path }] } },
      JSON.stringify(bad),
    )
  await refused({ number: 'X' }, '/values/number')
  await refused({ number: undefined }, '/values/number')
  await refused({ name: '' }, '/values/name')
  await refused({ name: 5 }, '/values/name')
  await refused({ name: 'x'.repeat(101) }, '/values/name')
  await refused({ kind: 'bank' }, '/values/kind')
  await refused({ tags: ['vip', 'vip'] }, '/values/tags')
  await refused({ debt: -11 }, '/values/debt')
  await refused({ debt: '3' }, '/values/debt')
  await refused({ since: '2026-02-30' }, '/values/since')
  await refused({ opens: '25:00' }, '/values/opens')
  await refused({ seenAt: 'yesterday' }, '/values/seenAt')
  await refused({ active: 1 }, '/values/active')
  await refused({ place: { lat: 91, lng: 0 } }, '/values/place')
  await refused({ constructor: 1 }, '/values/constructor')
  t.match(await call('POST', '/data', { dataTypeId: made._id, values }), {
    status: 400,
    body: { errors: [{ path: '/dataTypeId' }] },
  })

  for (const dataTypeId of [null, made._id])
    t.match(await call('PATCH', `/data/${made._id}`, { dataTypeId }), {
      status: 400,
      body: { errors: [{ path: '/dataTypeId' }] },
    })
  t.match(await call('PATCH', `/data/${made._id}`, { values: { debt: null, name: 'Corner shop' } }), {
    status: 200,
    body: { data: { version: 2, values: { name: 'Corner shop', debt: undefined, kind: 'shop' } } },
  })
  t.match((await call('PUT', `/data/${made._id}`, { values: { number: 'C-1', name: 'New' } })).body.data.values, {
    kind: undefined,
    name: 'New',
  })
  t.equal((await call('PATCH', `/data/${made._id}`, { values: {}, version: 1 })).status, 409)
  t.match(await call('PATCH', `/data/${made._id}`, { dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f' }), {
    status: 400,
  })
  t.equal((await call('DELETE', `/data-type/${type._id}`)).status, 409, 'a type with records')
  t.equal((await call('DELETE', `/data/${made._id}`)).status, 200)
  t.equal((await call('GET', `/data/${made._id}`)).status, 404)
  t.equal((await call('DELETE', `/data-type/${type._id}`)).status, 200)
})

test('primary key and unique fields belong to one record, case aside, also among writers at once', async (t) => {
  const { call, make } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const body = (number: string, phone?: string) => ({
    dataTypeId: type._id,
    values: { number, name: 'N', ...(phone && { phone }) },
  })
  const answers = await Promise.all(['C-1', 'C-1', 'C-1'].map((number) => call('POST', '/data', body(number))))
  t.same(answers.map(({ status }) => status).sort(), [201, 409, 409])
  t.match(answers.find(({ status }) => status === 409)?.body, {
    code: 'key_in_use',
    errors: [{ path: '/values/number' }],
  })
  const one = await make('/data', body('C-2', 'Abc'))
  t.match(await call('POST', '/data', body('C-3', ' aBC')), {
    status: 409,
    body: { errors: [{ path: '/values/phone' }] },
  })
  t.equal((await call('PATCH', `/data/${one._id}`, { values: { phone: 'other' } })).status, 200)
  t.equal((await call('POST', '/data', body('C-3', 'abc'))).status, 201, 'what was given up is free')
  t.equal((await call('PATCH', `/data/${one._id}`, { values: { phone: 'ABC' } })).status, 409)
  t.equal((await call('DELETE', `/data/${one._id}`)).status, 200)
  t.equal((await call('POST', '/data', body('C-2'))).status, 201)
})

test('records are found by type, primary key, every filterable field, bounds, words and order', async (t) => {
  const { call, make, list } = await openData(t)
  const type = await make('/data-type', CUSTOMERS)
  const other = await make('/data-type', {
    name: 'Products',
    primaryKey: 'sku',
    fields: [
      { name: 'sku', type: 'text' },
      { name: 'debt', type: 'number' },
    ],
  })
  await make('/data', { dataTypeId: other._id, values: { sku: 'C-1', debt: 5 } })
  const numbers = [3, -7, 0, 120, 15.5]
  for (const [i, debt] of numbers.entries())
    await make('/data', {
      dataTypeId: type._id,
      values: {
        number: `C-${i}`,
        name: ['żaba', 'Abacus', 'zebra', 'Mole', 'mouse'][i],
        debt,
        kind: i % 2 === 0 ? 'shop' : 'restaurant',
        tags: i < 2 ? ['vip', 'late'] : ['cash'],
        since: `2026-0${i + 1}-15`,
        opens: i === 0 ? '07:30' : '07:30:00',
        active: i !== 4,
        ...(i < 3 && { seenAt: 1_767_225_600_000 + i * 1000 }),
      },
    })
  const of = `dataTypeId=${type._id}`
  const found = async (query: string): Promise<string> =>
    (await list(`${of}&${query}`)).data
      .map((row: { values: { number: string } }) => row.values.number.slice(2))
      .join('')
  const any = async (query: string): Promise<string> => [...(await found(query))].sort().join('')
  t.equal((await list('')).total, 6)
  t.equal((await list(of)).total, 5)
  t.equal(await any('values.kind=shop'), '024')
  t.equal(await any('values.kind=shop&values.active=true'), '02')
  t.equal(await any('values.kind=shop,restaurant'), '01234')
  t.equal(await any('values.kind=shop&values.kind=restaurant&values.active=false'), '4')
  t.equal(await any('values.tags=vip,cash&values.kind=shop,null'), '024')
  t.equal(await any('values.seenAt=null'), '34')
  t.equal(await any('values.seenAt=null&values.seenAt=1767225600000'), '034')
  t.equal(await any('values.number=C-1&values.number=C-3'), '13')
  t.equal(await any('values.number=C-1,C-3'), '', 'a text may have a comma')
  t.equal((await list(`dataTypeId=${type._id},${other._id}`)).total, 6)
  t.equal(await found('values.tags=late&sortBy=values.number&sortOrder=desc'), '10')
  t.equal(await found('values.debt=0'), '2')
  t.equal(await found('values.since=2026-03-15'), '2')
  t.equal(await any('values.opens=07:30'), '01234')
  t.equal(await found('values.debt.from=0'), '2043')
  t.equal((await list(`${of}&values.debt.from=0`)).total, 4)
  t.equal(await found('values.debt.from=0&values.debt.to=15.5'), '204')
  t.equal(await found('values.debt.from=-10&values.since.from=2026-02-01&values.since.to=2026-04-30'), '123')
  t.equal(await found('values.seenAt.to=2026-01-01T00:00:01Z'), '01')
  t.equal(await found('sortBy=values.debt'), '12043')
  t.equal(await found('sortBy=values.name&values.kind=shop'), '420')
  t.equal((await found('sortBy=values.seenAt')).slice(2), '012', 'without a value first')
  t.equal(await found('q=zaba'), '0')
  t.equal(await any('q=mo&sortBy=createdAt&sortOrder=desc'), '34')
  t.same(
    (await list(`${of}&limit=2&sortBy=values.debt&fields=debt,values.number`)).data.map((row: object) =>
      Object.keys(row).sort(),
    ),
    [
      ['_id', 'values'],
      ['_id', 'values'],
    ],
  )
  let cursor = (await list(`${of}&limit=2&sortBy=values.debt`)).nextCursor
  const next = await list(`${of}&limit=2&sortBy=values.debt&cursor=${cursor}`)
  t.same(
    next.data.map((row: { values: { debt: number } }) => row.values.debt),
    [3, 15.5],
  )
  cursor = next.nextCursor
  t.equal((await list(`${of}&limit=2&sortBy=values.debt&cursor=${cursor}`)).nextCursor, null)
  for (const [query, path] of [
    ['values.kind=shop', '/dataTypeId'],
    [`${of}&values.colour=red`, '/values.colour'],
    [`${of}&values.place=1`, '/values.place'],
    [`${of}&values.name.from=a`, '/values.name.from'],
    [`${of}&values.debt=much`, '/values.debt'],
    [`${of}&values.debt=1,2`, '/values.debt'],
    [`${of}&values.kind=shop,`, '/values.kind'],
    [`${of}&values.kind=office`, '/values.kind'],
    [`${of}&values.kind=shop,office`, '/values.kind'],
    [`${of}&values.kind=Shop`, '/values.kind'],
    [`${of}&values.tags=vip&values.tags=gold`, '/values.tags'],
    [`${of}&values.active=yes`, '/values.active'],
    [`${of}&values.debt.from=1&values.debt.from=2`, '/values.debt.from'],
    [`${of},${other._id}&values.debt=1`, '/dataTypeId'],
    [`${of}&sortBy=values.colour`, '/sortBy'],
    [`${of}&sortBy=name`, '/sortBy'],
    [`${of}&fields=colour`, '/fields'],
    [`dataTypeId=${type._id.replace(/.$/, 'f').replace(/^./, 'f')}`, '/dataTypeId'],
  ])
    t.match(await list(query), { code: 'invalid', errors: [{ path }] }, query)

  const unplaced = { path: '/values.place', message: /nor by null: no index has the values of a coordinate/ }
  t.match(await list(`${of}&values.place=null`), { code: 'invalid', errors: [unplaced] }, 'the reason is said')

  const byKey = await call('GET', '/data/type/cUSTOMERS/c-3')
  t.match(byKey.body.data.values, { number: 'C-3' })
  t.equal((await call('GET', `/data/type/Customers/${byKey.body.data._id}`)).status, 200)
  t.equal((await call('GET', `/data/type/Products/${byKey.body.data._id}`)).status, 404, 'another type')
  t.equal((await call('GET', '/data/type/Nothing/C-3')).status, 404)
})

test('a reference is there, is of its type, and keeps what it names', async (t) => {
  const { call, make } = await openData(t)
  const customers = await make('/data-type', CUSTOMERS)
  const key = { name: 'id', type: 'text' }
  const of = (fields: object[], more = {}) => ({ name: 'Sites', primaryKey: 'id', fields: [key, ...fields], ...more })
  const reference = { name: 'customer', type: 'reference', dataTypeId: customers._id }
  t.match(
    await call('POST', '/data-type', of([{ ...reference, dataTypeId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f' }])),
    {
      status: 400,
      body: { errors: [{ path: '/fields/1/dataTypeId' }] },
    },
  )
  const sites = await make('/data-type', of([{ ...reference, required: true }]))
  const shop = await make('/data', { dataTypeId: customers._id, values: { number: 'C-1', name: 'Shop' } })
  const site = await make('/data', { dataTypeId: sites._id, values: { id: 's1', customer: shop._id.toUpperCase() } })
  t.equal(site.values.customer, shop._id)
  t.match(await call('PATCH', `/data/${site._id}`, { values: { customer: site._id } }), {
    status: 400,
    body: { errors: [{ path: '/values/customer' }] },
  })
  t.match(await call('DELETE', `/data/${shop._id}`), { status: 409, body: { errors: [{ path: `/data/${site._id}` }] } })
  t.match(await call('DELETE', `/data-type/${customers._id}`), { status: 409 })
  t.match(
    await call('PUT', `/data-type/${customers._id}`, {
      ...CUSTOMERS,
      fields: [...CUSTOMERS.fields, { name: 'site', type: 'reference', dataTypeId: sites._id, required: true }],
    }),
    { status: 400, body: { errors: [{ path: '/fields/11/dataTypeId', message: /circle/ }] } },
  )
  const round = await call('PUT', `/data-type/${customers._id}`, {
    ...CUSTOMERS,
    fields: [...CUSTOMERS.fields, { name: 'site', type: 'reference', dataTypeId: sites._id }],
  })
  t.equal(round.status, 200, 'an optional one may go round')
  t.equal((await call('PATCH', `/data/${shop._id}`, { values: { site: site._id } })).status, 200)
  t.match((await call('GET', `/data/${shop._id}`)).body.data.values, { site: site._id })
})

test('the length of a text is that of its characters, in the form in which it is kept', async (t) => {
  const { call, make } = await openData(t)
  const fields = [
    { name: 'id', type: 'text' },
    { name: 'short', type: 'text', min: 2, max: 3, pattern: '^[^a-z]*$' },
  ]
  const type = await make('/data-type', { name: 'Short', primaryKey: 'id', fields })
  const status = async (short: string) =>
    (await call('POST', '/data', { dataTypeId: type._id, values: { id: short, short } })).status
  for (const short of ['😀😀😀', 'e\u0301e\u0301e\u0301']) t.equal(await status(short), 201, short)
  for (const short of ['😀', 'e\u0301', '😀😀😀😀', 'éééé']) t.equal(await status(short), 400, short)
})

const MAIL = '^[\\w.+-]{1,64}@[\\w-]{1,63}\\.[a-z]{2,}$'

test('a data type that could do harm is refused by its field', async (t) => {
  const { call, make } = await openData(t)
  const key = { name: 'id', type: 'text' }
  const refused = async (fields: object[], path: string, more = {}) =>
    t.match(
      await call('POST', '/data-type', { name: 'Bad', primaryKey: 'id', fields: [key, ...fields], ...more }),
      { status: 400, body: { errors: [{ path }] } },
      path,
    )
  await refused([{ name: '__proto__', type: 'text' }], '/fields/1/name')
  await refused([{ name: 'a.b', type: 'text' }], '/fields/1/name')
  await refused([{ name: 'ID', type: 'number' }], '/fields/1/name')
  await refused([{ name: 'a', type: 'text', pattern: '(?=x)' }], '/fields/1/pattern')
  await refused([{ name: 'a', type: 'text', pattern: '^(.?){500}$' }], '/fields/1/pattern')
  await refused([{ name: 'a', type: 'text', pattern: '^(.?){500}$', max: 500 }], '/fields/1/pattern')
  await refused([{ name: 'a', type: 'number', pattern: 'x' }], '/fields/1/pattern')
  await refused([{ name: 'a', type: 'option' }], '/fields/1/options')
  await refused([{ name: 'a', type: 'number', min: 3, max: 2 }], '/fields/1/max')
  await refused([{ name: 'a', type: 'number', default: 'x' }], '/fields/1/default')
  await refused([{ name: 'a', type: 'photo' }], '/fields/1/type')
  await refused([{ name: 'a', type: 'coordinate', unique: true }], '/fields/1/unique')
  await refused(
    Array.from({ length: 10_000 }, (_, i) => ({ name: `f${i}`, type: 'text' })),
    '/fields',
  )
  await refused(
    Array.from({ length: 31 }, (_, i) => ({ name: `f${i}`, type: 'number' })),
    '/fields',
  )
  await refused([], '/primaryKey', { primaryKey: 'none' })
  await refused([{ name: 'flag', type: 'boolean' }], '/primaryKey', { primaryKey: 'flag' })
  const odd = await make('/data-type', {
    name: 'Odd',
    primaryKey: 'id',
    fields: [
      key,
      { name: 'constructor', type: 'text' },
      { name: 'slow', type: 'text', pattern: '(a+)+$' },
      { name: 'short', type: 'text', pattern: '^(.?){500}$', max: 400 },
      { name: 'mail', type: 'text', pattern: MAIL },
    ],
  })
  const made = await make('/data', { dataTypeId: odd._id, values: { id: '1', constructor: 'x' } })
  t.equal(made.values.constructor, 'x')
  t.match(await call('POST', '/data', { dataTypeId: odd._id, values: { id: '2', slow: `${'a'.repeat(9_000)}!` } }), {
    status: 400,
    body: { errors: [{ path: '/values/slow' }] },
  })
  const mail = `me@example.${'c'.repeat(4_000)}`
  t.match(await call('POST', '/data', { dataTypeId: odd._id, values: { id: '3', mail } }), {
    status: 400,
    body: { errors: [{ path: '/values/mail', message: 'must have at most 3831 characters' }] },
  })
  await make('/data', { dataTypeId: odd._id, values: { id: '3', mail: 'me@example.com' } })
  t.match(await call('POST', '/data-type', { name: 'ODD', primaryKey: 'id', fields: [key] }), { status: 409 })
})

test('a pattern that would cost too much now stays where it is', async (t) => {
  const { call, ...services } = await openData(t)
  const fields: JsonObject[] = [
    { name: 'id', type: 'text' },
    { name: 'long', type: 'text', pattern: '^(.?){500}$' },
  ]
  const origin = { organizationId: 'org-1', now: services.clock.now(), ids: idSource(0), metadata: {} }
  const body = { name: 'Old', primaryKey: 'id', fields }
  const { row, wrote } = await dataType.writer(services).create(origin, body)
  t.ok(wrote, 'as the service writes it')
  const url = `/data-type/${row._id}`
  await until('the type to be listed', async () => (await call('GET', url)).status === 200)
  t.match(await call('PATCH', url, { name: 'New' }), { status: 200, body: { data: { name: 'New', fields } } })
  const changed = (change: object) => call('PATCH', url, { fields: [fields[0], { ...fields[1], ...change }] })
  t.equal((await changed({ label: 'Long' })).status, 200)
  for (const change of [{ max: 600 }, { pattern: '^(.?){501}$' }])
    t.match(await changed(change), { status: 400, body: { errors: [{ path: '/fields/1/pattern' }] } })
  t.equal((await changed({ max: 400 })).status, 200)
})

test('a record that names itself can go, and null takes all values away', async (t) => {
  const { call, make } = await openData(t)
  const key = { name: 'id', type: 'text' }
  const type = await make('/data-type', {
    name: 'Boxes',
    primaryKey: 'id',
    fields: [key, { name: 'n', type: 'number' }],
  })
  const link = { name: 'in', type: 'reference', dataTypeId: type._id }
  t.equal((await call('PATCH', `/data-type/${type._id}`, { fields: [...type.fields, link] })).status, 200)
  const box = await make('/data', { dataTypeId: type._id, values: { id: '1', n: 1 } })
  t.equal((await call('PATCH', `/data/${box._id}`, { values: { in: box._id } })).status, 200)
  t.match(await call('PATCH', `/data/${box._id}`, { values: null }), {
    status: 400,
    body: { errors: [{ path: '/values/id', message: 'is required' }] },
  })
  t.equal((await call('DELETE', `/data/${box._id}`)).status, 200)
})

test('names, options and keys are found however they are written', async (t) => {
  const { call, make, list } = await openData(t)
  const [decomposed, composed] = ['NFD', 'NFC'].map((form) => 'Größe'.normalize(form))
  const fields = [
    { name: 'id', type: 'number' },
    { name: decomposed, type: 'option', options: [decomposed, 'b'] },
    { name: 'more', type: 'options', options: [decomposed, 'b'] },
  ]
  const type = await make('/data-type', { name: 'Sizes', primaryKey: 'id', fields })
  const of = (id: number, values: object) => ({ dataTypeId: type._id, values: { id, ...values } })
  await make('/data', of(0, {}))
  const made = await make('/data', of(1e21, { [decomposed]: decomposed, more: ['b', decomposed] }))
  t.same(made.values, { id: 1e21, [composed]: composed, more: ['b', composed] })
  t.equal((await call('POST', '/data', of(2, { more: [decomposed, composed] }))).status, 400, 'one of them twice')
  const twice = await call('POST', '/data', of(2, { [composed]: composed, [decomposed]: 'b' }))
  t.match(twice, { status: 400, body: { errors: [{ path: `/values/${decomposed}`, message: 'is named twice' }] } })
  for (const name of [decomposed, composed].map(encodeURIComponent))
    for (const [query, total] of [
      [`values.${name}=${name}`, 1],
      [`sortBy=values.${name}`, 2],
      [`fields=${name}`, 2],
    ] as const)
      t.match(await list(`dataTypeId=${type._id}&${query}`), { total }, query)
  for (const key of ['1e21', '1000000000000000000000', '1E+21'])
    t.equal((await call('GET', `/data/type/sizes/${encodeURIComponent(key)}`)).status, 200, key)
  for (const key of ['x', 'NaN', '%20']) t.equal((await call('GET', `/data/type/sizes/${key}`)).status, 404, key)
  const texts = await make('/data-type', { name: 'Texts', primaryKey: 'k', fields: [{ name: 'k', type: 'text' }] })
  const long = 'ä'.repeat(1_000)
  await make('/data', { dataTypeId: texts._id, values: { k: long } })
  t.equal((await call('GET', `/data/type/texts/${encodeURIComponent(long)}`)).status, 200, 'a long key')
})

test('a PUT has defaults, all faults are told at once, and what names a record is told by what clients see', async (t) => {
  const { call, make } = await openData(t)
  const customers = await make('/data-type', CUSTOMERS)
  const fields = [
    { name: 'id', type: 'text' },
    { name: 'kind', type: 'text', default: 'yard' },
    { name: 'size', type: 'number', max: 5 },
    { name: 'customer', type: 'reference', dataTypeId: customers._id },
  ]
  const sites = await make('/data-type', { name: 'Sites', primaryKey: 'id', fields })
  const customer = await make('/data', { dataTypeId: customers._id, values: { number: 'C-1', name: 'Ada' } })
  const site = await make('/data', {
    dataTypeId: sites._id,
    values: { id: 'one', kind: 'depot', customer: customer._id },
  })
  const put = await call('PUT', `/data/${site._id}`, { values: { id: 'one', customer: customer._id } })
  t.same(put.body.data.values, { id: 'one', kind: 'yard', customer: customer._id })
  const patched = await call('PATCH', `/data/${site._id}`, { values: { kind: null } })
  t.notOk('kind' in patched.body.data.values, 'a PATCH takes it away')
  const values = { size: 9, colour: 'red', customer: site._id }
  const refused = await call('POST', '/data', { dataTypeId: sites._id, values })
  t.same(refused.body.errors.map(({ path }: { path: string }) => path).sort(), [
    '/values/colour',
    '/values/customer',
    '/values/id',
    '/values/size',
  ])
  const used = await call('DELETE', `/data/${customer._id}`)
  t.match(used, { status: 409, body: { errors: [{ path: `/data/${site._id}`, message: 'names it in values' }] } })
})
