import type { Test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import { processes } from '../../../projections/processes.ts'
import { dataRoutes } from '../../../src/features/data/api.ts'
import { dataType } from '../../../src/features/data/data-type.ts'
import { record } from '../../../src/features/data/record.ts'
import { flow } from '../../../src/features/flows/flow.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { role } from '../../../src/features/identity/users/role.ts'
import { user } from '../../../src/features/identity/users/user.ts'
import { routingResult } from '../../../src/features/routing/result.ts'
import { team } from '../../../src/features/teams/team.ts'
import { task } from '../../../src/features/tasks/task.ts'
import type { EventLog } from '../../../src/engines/event-log.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import type { Method } from '../../../src/kit/http/route.ts'
import { Uploads } from '../../../src/kit/files/uploads.ts'
import { checkRecords } from '../../../src/reactors/records/check-records.ts'
import { callerWith } from '../../support/callers.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

export const PERMISSIONS = ['view/data', 'edit/data', 'view/data-type', 'edit/data-type']

/** Data types and records over the embedded engines. */
export const openData = async (t: Test) => {
  const resources = [dataType, record, flow, task, routingResult, hub, team, user, role]
  const services = await openServices(folderOf(t), new FakeClock(), resources)
  const projections = [directory(resources.map(({ rows }) => rows)), processes]
  const { runner, settle } = await startProjections(services, projections)
  const checks = checkRecords({ ...services, settle })
  t.teardown(async () => {
    await checks.close()
    await runner.close()
    await services.close()
  })
  const uploads = new Uploads({ files: services.files, bytesMax: 1024 * 1024 })
  /** The routes of another process, which has the same log in its own way. */
  const over = (log: EventLog) =>
    routeCaller({
      routes: dataRoutes({ ...services, log, uploads }),
      clock: services.clock,
      settle,
      timeoutMs: 60_000,
    })
  const ask = over(services.log)
  const call = (method: Method, url: string, body?: unknown, caller: Partial<UserCaller> = {}, seed?: Buffer) =>
    ask(method, url, { body, caller: callerWith(PERMISSIONS, caller), seed })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  const make = async (path: string, body: object): Promise<any> => {
    const answer = await call('POST', path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data
  }
  const list = async (query: string, caller: Partial<UserCaller> = {}) =>
    (await call('GET', `/data?${query}`, undefined, caller)).body
  const checked = (id: string) =>
    until(
      'the records to be checked',
      async () => (await call('GET', `/data-type/${id}`)).body.data.check.state === 'done',
    )
  return { ...services, settle, runner, call, over, make, list, checked }
}

/** A role that hides fields of a type. */
export const hiding = (dataTypeId: string, ...hiddenFields: string[]): Partial<UserCaller> => ({
  permissionDetails: [{ permissionName: 'view/data', dataTypeId, hiddenFields }],
})

export const CUSTOMERS = {
  name: 'Customers',
  type: 'customer',
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text', pattern: '^C-[0-9]+$' },
    { name: 'name', type: 'text', required: true, max: 100 },
    { name: 'phone', type: 'text', unique: true },
    { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
    { name: 'tags', type: 'options', options: ['vip', 'late', 'cash'] },
    { name: 'debt', type: 'number', min: -10 },
    { name: 'since', type: 'date' },
    { name: 'opens', type: 'time' },
    { name: 'seenAt', type: 'datetime' },
    { name: 'active', type: 'boolean', default: true },
    { name: 'place', type: 'coordinate' },
  ],
}
