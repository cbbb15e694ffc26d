import { test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { takeOutReferences } from '../../../src/reactors/references/take-out.ts'
import { openWarehouse } from '../../kit/resource/warehouse.ts'
import { dyingLog } from '../../support/dying-log.ts'

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resume) => setImmediate(resume))
}

test('a deletion that was killed between two appends is taken out of everything', async (t) => {
  const { over, make, read, ...services } = await openWarehouse(t)
  const depotId = await make('depot', { name: 'North' })
  for (let appends = 1; appends < 4; appends++) {
    const shelf = await make('shelf', { name: 'S' })
    const crates: string[] = []
    for (const name of ['A', 'B', 'C'])
      crates.push(await make('crate', { name, depotId, shelfId: shelf, shelfIds: [shelf] }))
    const naming = async () =>
      (await Promise.all(crates.map((id) => read('crate', id)))).filter(({ shelfId }) => shelfId)
    const dying = dyingLog(services.log, appends)
    await over(dying.log)('DELETE', `/shelf/${shelf}`)
    t.ok(dying.isDead, `killed after ${appends} appends`)
    t.ok((await naming()).length > 0, 'something is left to do')
    const follower = takeOutReferences(services)
    await until(async () => (await naming()).length === 0)
    await follower.close()
    t.same(
      (await Promise.all(crates.map((id) => read('crate', id)))).map(({ shelfIds }) => shelfIds),
      [[], [], []],
    )
  }
})

test('a record that comes to name it at that very moment is looked for once more', async (t) => {
  const { call, make, read, clock, log, ...services } = await openWarehouse(t)
  const depotId = await make('depot', { name: 'North' })
  const shelf = await make('shelf', { name: 'S' })
  const crate = await make('crate', { name: 'C', depotId })
  const follower = takeOutReferences({ ...services, clock, log })
  t.teardown(() => follower.close())
  await call('DELETE', `/shelf/${shelf}`)
  await until(async () => clock.isAwaited(10_000))
  // As a request that looked at the shelf right before its deletion would append it.
  const at = new Date(clock.now()).toISOString()
  const values = { name: 'C', depotId, shelfId: shelf, shelfIds: [] }
  const data = encodeJson({ organizationId: 'org-1', values, createdAt: at, at })
  await log.append(
    `crate-${crate}`,
    [{ id: idSource(0).next(), type: 'crateChanged', data, isJson: true, metadata: {} }],
    0,
  )
  await until(async () => (await read('crate', crate)).shelfId === shelf)
  clock.advance(10_000)
  await until(async () => !('shelfId' in (await read('crate', crate))))
  t.equal((await read('crate', crate)).version, 3)
})
