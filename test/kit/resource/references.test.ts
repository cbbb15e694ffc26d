import { test } from 'tap'
import { type EventLog, logWith } from '../../../src/engines/event-log.ts'
import { optional, reference } from '../../../src/kernel/schema.ts'
import { appendFacts } from '../../../src/kit/commands/handle-command.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { Naming } from '../../../src/kit/resource/naming.ts'
import { ResourceSet } from '../../../src/kit/resource/resource-set.ts'
import { openWarehouse, WAREHOUSE } from './warehouse.ts'

const [, , CRATE] = WAREHOUSE
const NOBODY = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f'

test('a reference names a record that is there and that the caller sees', async (t) => {
  const { call, make } = await openWarehouse(t)
  const [north, south] = [await make('depot', { name: 'North' }), await make('depot', { name: 'South' })]
  const shelf = await make('shelf', { name: 'S', depotId: south })
  const refused = async (body: object, path: string, caller = {}) =>
    t.match(
      await call('POST', '/crate', { name: 'C', depotId: north, ...body }, caller),
      { status: 400, body: { errors: [{ path, message: /names nothing/ }] } },
      path,
    )
  await refused({ depotId: NOBODY }, '/depotId')
  await refused({ shelfId: NOBODY }, '/shelfId')
  await refused({ shelfIds: [shelf, NOBODY] }, '/shelfIds/1')
  await refused({ shelfId: shelf }, '/shelfId', { hubIds: [north] })
  await refused({}, '/depotId', { organizationId: 'org-2' })

  const crate = await make('crate', { name: 'C', depotId: north, shelfId: shelf.toUpperCase() })
  t.match((await call('GET', `/crates?shelfId=${shelf}`)).body, { total: 1, data: [{ _id: crate, shelfId: shelf }] })
  t.equal((await call('GET', `/crates?shelfId=${shelf.toUpperCase()}`)).body.total, 1)
  t.equal(
    (await call('PATCH', `/crate/${crate}`, { name: 'D' }, { hubIds: [north] })).status,
    200,
    'what others have set may stay',
  )
  t.match((await call('PATCH', `/crate/${crate}`, { shelfId: NOBODY })).body.errors, [{ path: '/shelfId' }])
})

test('deleting what others cannot be without names what uses it, as far as the caller sees it', async (t) => {
  const { call, make } = await openWarehouse(t)
  const depot = await make('depot', { name: 'North' })
  const shelf = await make('shelf', { name: 'S', depotId: depot })
  const crates = [
    await make('crate', { name: 'A', depotId: depot }),
    await make('crate', { name: 'B', depotId: depot }),
  ]
  t.match(await call('DELETE', `/depot/${depot}`), {
    status: 409,
    body: {
      code: 'conflict',
      message: 'It is still in use by 1 shelf, 2 crates.',
      errors: [
        { path: `/shelf/${shelf}`, message: 'names it in depotId' },
        ...crates.sort().map((id) => ({ path: `/crate/${id}`, message: 'names it in depotId' })),
      ],
    },
  })
  const few = { permissions: new Set(['edit/depot', 'view/shelf']) }
  t.same((await call('DELETE', `/depot/${depot}`, undefined, few)).body.errors, [
    { path: `/shelf/${shelf}`, message: 'names it in depotId' },
    { path: '/crates', message: '2 more name it in depotId' },
  ])
  for (let i = 0; i < 8; i++) await make('crate', { name: `C${i}`, depotId: depot })
  const { errors } = (await call('DELETE', `/depot/${depot}`)).body
  t.equal(errors.length, 7)
  t.match(errors.at(-1), { path: '/crates', message: '5 more name it in depotId' })

  for (const heir of [depot, NOBODY])
    t.match((await call('DELETE', `/depot/${depot}?replaceWith=${heir}`)).body.errors, [{ path: '/replaceWith' }])
  const south = await make('depot', { name: 'South' })
  t.equal((await call('DELETE', `/depot/${depot}?replaceWith=${south}`)).status, 200)
  t.equal((await call('GET', `/crates?depotId=${south}`)).body.total, 10, 'the heir takes its place')
  t.match((await call('GET', `/shelf/${shelf}`)).body.data, { depotId: south, version: 2 })
  t.equal((await call('GET', `/depot/${depot}`)).status, 404)
  t.equal(
    (await call('DELETE', `/crate/${crates[0]}?replaceWith=${crates[1]}`)).status,
    400,
    'only where that is declared',
  )
})

test('what is taken out of what names it is gone from there when the deletion is answered, in the log too', async (t) => {
  const { call, make, read, log } = await openWarehouse(t)
  const depotId = await make('depot', { name: 'North' })
  const [one, two] = [await make('shelf', { name: '1' }), await make('shelf', { name: '2' })]
  const crate = await make('crate', { name: 'C', depotId, shelfId: one, shelfIds: [one, two] })
  const other = await make('crate', { name: 'D', depotId, shelfIds: [two] })
  t.same((await read('shelf', one)).crateIds, [crate])
  const deleted = await call('DELETE', `/shelf/${one}`)
  t.match(deleted, { status: 200, applied: true })
  const left = await read('crate', crate)
  t.notOk('shelfId' in left)
  t.match(left, { shelfIds: [two] })
  t.equal((await read('crate', other)).version, 1, 'what does not name it is not written')
  const [last] = await log.read(`crate-${crate}`, 'end', 1, 'backwards')
  t.equal(last.type, 'crateChanged')
  t.notMatch(new TextDecoder().decode(last.data), one)
  t.same((await read('shelf', two)).crateIds.sort(), [crate, other].sort())
  await call('DELETE', `/crate/${other}`)
  t.same((await read('shelf', two)).crateIds, [crate], 'a linked member follows those who name it')
})

test('what is named at the very moment of its deletion is either kept or named by nobody', async (t) => {
  const { call, make } = await openWarehouse(t)
  const home = await make('depot', { name: 'Home' })
  for (let i = 0; i < 12; i++) {
    const depotId = await make('depot', { name: 'North' })
    const crate = await make('crate', { name: 'A', depotId: home })
    const remove = () => call('DELETE', `/depot/${depotId}`)
    const name = () => call('POST', '/crate', { name: 'B', depotId })
    const calls = [name, remove, () => call('PATCH', `/crate/${crate}`, { depotId })]
    await Promise.all((i % 2 === 0 ? calls : [remove, ...calls]).map((one) => one()))
    const isGone = (await call('GET', `/depot/${depotId}`)).status === 404
    const { total } = (await call('GET', `/crates?depotId=${depotId}`)).body
    t.equal(isGone, total === 0, `${total} name it`)
  }
  const used = await make('depot', { name: 'Used' })
  await make('crate', { name: 'C', depotId: used })
  const busy = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      i % 2 === 0 ? call('DELETE', `/depot/${used}`) : call('POST', '/crate', { name: 'D', depotId: used }),
    ),
  )
  t.same(
    busy.map(({ status }) => status),
    Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? 409 : 201)),
    'a deletion that is refused refuses nobody else',
  )
})

test('a write that was refused at the place of what is deleted brings it back for nobody', async (t) => {
  const warehouse = await openWarehouse(t)
  const { log, call, make } = warehouse
  const depotId = await make('depot', { name: 'North' })
  t.equal((await call('DELETE', `/depot/${depotId}`)).status, 200)
  // The tables may not have the deletion yet, so that this alone keeps others from naming it.
  const nameOver = (over: EventLog) =>
    new Naming(CRATE.declaration, { ...warehouse, log: over }).write('c', async (nameIn) => ({
      wrote: await nameIn({ depotId }, undefined),
    }))
  const name = () => nameOver(log)
  const expected = { code: 'invalid', message: '/depotId names nothing in this organization' }
  await t.rejects(name(), expected)
  await t.rejects(nameOver(logWith(log, log.append)), expected, 'nor over another way to append, as imports have')
  const ids = idSource(0)
  const data = { organizationId: 'org-1', values: { name: 'North' }, createdAt: '', at: '' }
  await appendFacts(log, `depot-${depotId}`, [{ type: 'depotFenced', data: {} }], [ids.next()], 2, {})
  await t.rejects(name(), expected)
  await appendFacts(log, `depot-${depotId}`, [{ type: 'depotChanged', data }], [ids.next()], 3, {})
  await t.resolves(name(), 'once it is restored it can be named')
})

test('what has the id of a record of another kind is left where it is named', async (t) => {
  const { call, make, read } = await openWarehouse(t)
  const _id = await make('depot', { name: 'North' })
  await make('shelf', { _id, name: 'S' })
  const crate = await make('crate', { name: 'C', depotId: _id, shelfId: _id })
  t.equal((await call('DELETE', `/shelf/${_id}`)).status, 200)
  const left = await read('crate', crate)
  t.equal(left.depotId, _id)
  t.notOk('shelfId' in left)
})

test('a record can be named whose id another kind had in another organization', async (t) => {
  const { call, make } = await openWarehouse(t)
  const _id = await make('depot', { name: 'North' })
  const others = { organizationId: 'org-2' }
  const home = (await call('POST', '/depot', { name: 'Home' }, others)).body.data._id
  const crate = { _id, name: 'C', depotId: home }
  t.equal((await call('POST', '/crate', crate, others)).status, 201)
  t.equal((await call('DELETE', `/crate/${_id}`, undefined, others)).status, 200)
  t.equal((await call('POST', '/crate', { name: 'A', depotId: _id })).status, 201)
})

test('a set of resources says at once what is wrong with it', (t) => {
  const [depot, shelf, crate] = WAREHOUSE
  t.throws(() => new ResourceSet([shelf]), /there is no resource depots/)
  const box = {
    declaration: { ...crate.declaration, noun: 'box', plural: 'boxes', fields: { shelfId: reference('shelves') } },
  }
  t.throws(() => new ResourceSet([depot, shelf, box]), /box\.shelfId must be optional or a list/)
  const kept = { ...crate.declaration, internal: { keeperId: optional(reference('keepers')) } }
  t.throws(() => new ResourceSet([depot, shelf, { declaration: kept }]), /no resource keepers/)
  const open = { ...crate.declaration, internal: { firstId: reference('depots', { state: ['open'] }) } }
  t.throws(
    () => new ResourceSet([depot, shelf, { declaration: open }]),
    /crate\.firstId .* neither taken out nor replaced/,
  )
  t.end()
})
