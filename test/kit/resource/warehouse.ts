import type { Test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { processes } from '../../../projections/processes.ts'
import { giveWay } from '../../../src/processes/give-way.ts'
import type { EventLog } from '../../../src/engines/event-log.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { list, optional, reference, text, withDefault } from '../../../src/kernel/schema.ts'
import type { Method } from '../../../src/kit/http/route.ts'
import { defineResource, type Resource } from '../../../src/kit/resource/resource.ts'
import { callerWith } from '../../support/callers.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'

/** Cannot be deleted while something names it, unless something else takes its place. */
const depot = defineResource({
  noun: 'depot',
  plural: 'depots',
  tag: 'Warehouse',
  fields: { name: text({ max: 20 }) },
  permissions: { view: 'view/depot', edit: 'edit/depot' },
  hubField: '_id',
  deletion: { replaceable: true },
  example: { name: 'Depot' },
})

/** Is taken out of what names it. */
const shelf = defineResource({
  noun: 'shelf',
  plural: 'shelves',
  tag: 'Warehouse',
  fields: { name: text({ max: 20 }), depotId: optional(reference('depots')) },
  permissions: { view: 'view/shelf', edit: 'edit/shelf' },
  hubField: 'depotId',
  deletion: { whenReferenced: 'takeOut' },
  table: { links: { crateIds: { noun: 'crate', field: 'shelfIds' } }, indexes: { equality: ['crateIds'] } },
  readOnly: { crateIds: withDefault(list(text({ max: 50 }), { max: 100 }), []) },
  example: { name: 'Shelf' },
})

const crate = defineResource({
  noun: 'crate',
  plural: 'crates',
  tag: 'Warehouse',
  fields: {
    name: text({ max: 20 }),
    depotId: reference('depots'),
    shelfId: optional(reference('shelves')),
    shelfIds: withDefault(list(reference('shelves'), { max: 5, unique: true }), []),
  },
  permissions: { view: 'view/crate', edit: 'edit/crate' },
  example: { name: 'Crate', depotId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c' },
})

export const WAREHOUSE = [depot, shelf, crate]
const PERMISSIONS = ['depot', 'shelf', 'crate'].flatMap((noun) => [`view/${noun}`, `edit/${noun}`])

/** Three resources that name one another, over the embedded engines. */
export const openWarehouse = async (t: Test, resources: readonly Resource[] = WAREHOUSE) => {
  const services = await openServices(folderOf(t), new FakeClock(), resources)
  const { runner, settle } = await startProjections(services, [directory(resources.map(({ rows }) => rows)), processes])
  services.processes.know([giveWay(services)])
  services.processes.startCarryingOn()
  t.teardown(async () => {
    await services.processes.stopCarryingOn()
    await runner.close()
    await services.close()
  })
  /** Calls over the given log, which may be one that dies. */
  const over = (log: EventLog) => {
    const routes = resources.flatMap((resource) => resource.routes({ ...services, log }))
    const call = routeCaller({ routes, clock: services.clock, settle })
    return (method: Method, url: string, body?: unknown, caller: Partial<UserCaller> = {}) =>
      call(method, url, { body, caller: callerWith(PERMISSIONS, caller) })
  }
  const call = over(services.log)
  const make = async (noun: string, body: object): Promise<string> => {
    const answer = await call('POST', `/${noun}`, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data._id
  }
  const read = async (noun: string, id: string) => (await call('GET', `/${noun}/${id}`)).body.data
  return { ...services, settle, over, call, make, read }
}
