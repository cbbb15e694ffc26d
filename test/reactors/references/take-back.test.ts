import { test, type Test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { withoutAttached } from '../../../src/kit/files/attached-file.ts'
import { buryRecord } from '../../../src/processes/bury.ts'
import { takeBackDeletions } from '../../../src/reactors/references/take-back.ts'
import { defineResource } from '../../../src/kit/resource/resource.ts'
import { openWarehouse, WAREHOUSE } from '../../kit/resource/warehouse.ts'
import { CUSTOMERS, openData, PERMISSIONS } from '../../features/data/open-data.ts'
import { callerWith } from '../../support/callers.ts'
import { until } from '../../support/service.ts'

/** The same log as another process has it, where appends of a type wait. */
const heldLog = (log: EventLog, type: string) => {
  let go = (): void => undefined
  let isHeld = false
  const opened = new Promise<void>((resolve) => {
    go = resolve
  })
  const append: EventLog['append'] = async (stream, events, expected) => {
    if (events.some((event) => event.type === type)) {
      isHeld = true
      await opened
    }
    return log.append(stream, events, expected)
  }
  const held = new Proxy(log, {
    get: (target, name) => {
      if (name === 'append') return append
      const member = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  return { log: held, go, isHeld: () => isHeld }
}

/** A depot that one process deletes while another one makes a crate that names it. */
const race = async (t: Test, opened?: Awaited<ReturnType<typeof openWarehouse>>, name = 'North') => {
  const warehouse = opened ?? (await openWarehouse(t))
  const { make, log, over } = warehouse
  const depotId = await make('depot', { name })
  const other = heldLog(log, 'depotDeleted')
  const overOther = over(other.log)
  const deleting = overOther('DELETE', `/depot/${depotId}`)
  await until('the deletion to be decided', async () => other.isHeld())
  const crate = await make('crate', { name: 'C', depotId })
  other.go()
  t.match(await deleting, { status: 200 })
  return { warehouse, depotId, crate, overOther }
}

test('what was deleted long ago stays so, and holds nothing up', async (t) => {
  const { warehouse, depotId } = await race(t)
  const { call, clock } = warehouse
  clock.advance(8 * 86_400_000)
  const follower = takeBackDeletions(warehouse)
  t.teardown(() => follower.close())
  await follower.ready()
  t.match(await call('GET', `/depot/${depotId}`), { status: 404 })
})

test('what one process deletes while another one comes to name it is restored, once, and can be named again', async (t) => {
  const { warehouse, depotId, crate, overOther } = await race(t)
  const { call, make, read, clock, log } = warehouse
  const warned: string[] = []
  const logger = { ...warehouse.logger, warn: (message: string) => void warned.push(message) }
  const unused = await make('depot', { name: 'South' })
  t.match(await call('DELETE', `/depot/${unused}`), { status: 200 })
  t.match(await call('GET', `/depot/${depotId}`), { status: 404 })

  const follower = takeBackDeletions({ ...warehouse, logger })
  t.teardown(() => follower.close())
  await until('the follower to wait for late writes', async () => clock.isAwaited(10_000))
  clock.advance(10_000)
  await until('the depot to be back', async () => (await call('GET', `/depot/${depotId}`)).status === 200)
  t.match(await read('depot', depotId), { name: 'North', version: 3 })
  t.equal((await read('crate', crate)).depotId, depotId)
  t.equal(warned.length, 1)
  t.match(await call('GET', `/depot/${unused}`), { status: 404 }, 'what nothing names is gone')
  t.match(await overOther('POST', '/crate', { name: 'D', depotId }), { status: 201 }, 'also where it was deleted')
  t.match(await overOther('DELETE', `/depot/${depotId}`), { status: 409 })
  const [last] = await log.read(`depot-${depotId}`, 'end', 1, 'backwards')
  t.match(last, { type: 'depotChanged', metadata: { actor: 'reactor:take-back-deletions' } }, 'the log says who')
})

test('what another process made name a record while it gave way to another one names that one', async (t) => {
  const { call, make, read, clock, log, over, ...warehouse } = await openWarehouse(t)
  const [depotId, heir] = [await make('depot', { name: 'North' }), await make('depot', { name: 'South' })]
  const other = heldLog(log, 'crateCreated')
  const making = over(other.log)('POST', '/crate', { name: 'C', depotId })
  await until('the crate to be decided', async () => other.isHeld())
  t.match(await call('DELETE', `/depot/${depotId}?replaceWith=${heir}`), { status: 200 })
  other.go()
  const { body } = await making
  t.equal((await read('crate', body.data._id)).depotId, depotId)
  const follower = takeBackDeletions({ ...warehouse, clock, log })
  t.teardown(() => follower.close())
  await until('the follower to wait for late writes', async () => clock.isAwaited(10_000))
  clock.advance(10_000)
  await until('the heir to be named', async () => (await read('crate', body.data._id)).depotId === heir)
  t.match(await call('GET', `/depot/${depotId}`), { status: 404 })
})

test('what is restored while another one has its name by now comes back under another name', async (t) => {
  const [plain, ...others] = WAREHOUSE
  const depots = defineResource({ ...plain.declaration, unique: { field: 'name' } })
  const long = 'N'.repeat(20)
  const { warehouse, depotId, crate } = await race(t, await openWarehouse(t, [depots, ...others]), long)
  const { call, make, read, clock } = warehouse
  await make('depot', { name: long })
  await make('depot', { name: `${'N'.repeat(16)} (2)` })
  const follower = takeBackDeletions(warehouse)
  t.teardown(() => follower.close())
  await until('the follower to wait for late writes', async () => clock.isAwaited(10_000))
  clock.advance(10_000)
  await until('the depot to be back', async () => (await call('GET', `/depot/${depotId}`)).status === 200)
  t.match(await read('depot', depotId), { name: `${'N'.repeat(16)} (3)` })
  t.equal((await read('crate', crate)).depotId, depotId)
})

test('a record whose primary key was given away meanwhile is restored with it, and both are listed until one is mended', async (t) => {
  const office = await openData(t)
  const { call, over, make, list, clock, log, runner } = office
  const type = await make('/data-type', CUSTOMERS)
  const fields = [
    { name: 'number', type: 'text' },
    { name: 'customer', type: 'reference', dataTypeId: type._id },
  ]
  const orders = await make('/data-type', { name: 'Orders', primaryKey: 'number', fields })
  const customer = (values: object) => ({ dataTypeId: type._id, values: { number: 'C-1', name: 'Shop', ...values } })
  const { _id: customerId } = await make('/data', customer({ phone: '123' }))
  const other = heldLog(log, 'dataDeleted')
  const caller = callerWith(PERMISSIONS)
  const deleting = over(other.log)('DELETE', `/data/${customerId}`, { caller })
  await until('the deletion to be decided', async () => other.isHeld())
  const order = await make('/data', { dataTypeId: orders._id, values: { number: 'O-1', customer: customerId } })
  other.go()
  t.match(await deleting, { status: 200 })
  const heir = await make('/data', customer({ name: 'New shop' }))
  const warned: object[] = []
  const logger = { ...office.logger, warn: (_message: string, said = {}) => void warned.push(said) }
  const follower = takeBackDeletions({ ...office, logger })
  t.teardown(() => follower.close())
  await until('the follower to wait for late writes', async () => clock.isAwaited(10_000))
  clock.advance(10_000)
  await until('the customer to be back', async () => (await call('GET', `/data/${customerId}`)).status === 200)
  t.match((await call('GET', `/data/${customerId}`)).body.data.values, { number: 'C-1', name: 'Shop', phone: '123' })
  t.equal((await call('GET', `/data/${order._id}`)).body.data.values.customer, customerId)
  t.match(warned, [{ shared: ['values/number'] }], 'the operator is told which value')
  const listed = async () => (await list('invalid=true')).data.map(({ _id }: { _id: string }) => _id).sort()
  t.same(await listed(), [customerId, heir._id].sort())
  t.match(
    await call('POST', '/data', customer({ phone: '123' })),
    { status: 409 },
    'what is not shared is its own again',
  )
  t.match(await call('PATCH', `/data/${customerId}`, { values: { number: 'C-2' } }), { status: 200 })
  t.same(await listed(), [])
  t.match(await call('PATCH', `/data/${heir._id}`, { values: { number: 'C-2' } }), { status: 409 })
  t.same((await runner.rebuild('directory')).differing, 0, 'the log says the same')
})

test('a record that was erased, or that names it no longer, brings nothing back', async (t) => {
  const warehouse = await openWarehouse(t)
  const { call, make, clock, log, over } = warehouse
  const ids = [
    await make('depot', { name: 'A' }),
    await make('depot', { name: 'B' }),
    await make('depot', { name: 'E' }),
  ]
  const keeper = await make('depot', { name: 'C' })
  const crates: string[] = []
  for (const depotId of ids) {
    const other = heldLog(log, 'depotDeleted')
    const deleting = over(other.log)('DELETE', `/depot/${depotId}`)
    await until('the deletion to be decided', async () => other.isHeld())
    crates.push(await make('crate', { name: 'C', depotId }))
    other.go()
    await deleting
  }
  t.match(await call('PATCH', `/crate/${crates[0]}`, { depotId: keeper }), { status: 200 })
  t.match(await call('DELETE', `/crate/${crates[1]}`), { status: 200 })
  const follower = takeBackDeletions(warehouse)
  t.teardown(() => follower.close())
  await until('the follower to wait for late writes', async () => clock.isAwaited(10_000))
  const now = clock.now()
  await buryRecord(log, 'depot', ids[2], { organizationId: 'org-1', now, ids: idSource(now), metadata: {} })
  // What was erased is a deletion of its own.
  await until('all to be looked at', async () => {
    clock.advance(10_000)
    return follower.lag(clock.now()).events === 0
  })
  for (const id of ids) {
    const [last] = await log.read(`depot-${id}`, 'end', 1, 'backwards')
    t.equal(last.type, 'depotDeleted')
  }
})

test('what is restored names no file: those went with it', (t) => {
  const values = { dataTypeId: 'T', values: { number: '1', papers: ['F1', 'F2'], tags: ['a'], place: { lat: 1 } } }
  t.same(withoutAttached({ ...values, files: [{ _id: 'F1' }, { _id: 'F2' }] }), {
    dataTypeId: 'T',
    values: { number: '1', papers: [], tags: ['a'], place: { lat: 1 } },
  })
  t.equal(withoutAttached(values), values)
  t.end()
})
