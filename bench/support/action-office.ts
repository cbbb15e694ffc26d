import type { EventLog } from '../../src/engines/event-log.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { AUTOMATION_CREATED, type AutomationCreated, automationStream } from '../../src/features/automations/events.ts'
import { newSecret, sealDetails, sealSecret } from '../../src/features/automations/sealed.ts'
import { DATA_TYPES } from '../../src/features/data/views.ts'
import { FLOWS } from '../../src/features/flows/views.ts'
import { ACCESS_ROLES, ACCESS_USERS, HUBS_TABLE, USERS_TABLE } from '../../src/features/identity/views.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { encodeJson } from '../../src/kernel/event.ts'
import type { JsonObject } from '../../src/kernel/json.ts'
import type { Row } from '../../src/kernel/table.ts'
import { eventTypes } from '../../src/kit/commands/declared-event.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import type { Keyring } from '../../src/kit/keys/keyring.ts'

interface OfficeServices {
  log: EventLog
  tables: TableStore
  keyring: Keyring
  clock: Clock
}

const AT = '2026-01-01T00:00:00.000Z'
const APPENDS_AT_ONCE = 500

/** Ids of one organization of the bench, derived from its name. */
export const officeOf = (name: string) => {
  const id = (what: string, n = 0): string => idFrom('bench', name, what, n)
  return {
    organizationId: id('organization'),
    flowId: id('flow'),
    otherFlowId: id('other-flow'),
    hubId: id('hub'),
    otherHubId: id('other-hub'),
    userId: id('user'),
    dataTypeId: id('data-type'),
    automationId: id('automation'),
    taskId: (n: number): string => id('task', n),
    id,
  }
}

export type Office = ReturnType<typeof officeOf>

const appendOne = (
  { log, clock }: OfficeServices,
  organizationId: string,
  stream: string,
  type: string,
  data: object,
): Promise<unknown> => {
  const id = idSource(clock.now()).next()
  return log.append(stream, [{ id, type, data: encodeJson(data), isJson: true, metadata: { organizationId } }], 'none')
}

/** An organization with two flows and hubs, one data type, one user with all permissions. */
export const found = async (services: OfficeServices, office: Office): Promise<void> => {
  const { organizationId, userId, dataTypeId, id } = office
  const flow = {
    name: 'Flow',
    isActive: true,
    steps: [{ id: 'one', name: 'One', components: [{ id: 'count', type: 'number', label: 'Count' }] }],
    needsDataType: false,
    dataTypeIds: [],
  }
  const common = { organizationId, version: 1, createdAt: AT, updatedAt: AT }
  const rows: [string, Row & { _id: string }][] = []
  for (const flowId of [office.flowId, office.otherFlowId]) {
    const data = { organizationId, values: flow, createdAt: AT, at: AT }
    await appendOne(services, organizationId, `flow-${flowId}`, eventTypes('flow').created, data)
    rows.push([FLOWS, { _id: flowId, ...common, ...flow }])
  }
  for (const hubId of [office.hubId, office.otherHubId]) rows.push([HUBS_TABLE, { _id: hubId, ...common, name: 'Hub' }])
  const field = { _id: id('field'), no: 1, name: 'number', type: 'text' }
  const roleId = id('role')
  const permissions = ['view/task', 'edit/task', 'dispatch/task', 'edit/data', 'view/all-hubs', 'view/user']
  const user = { _id: userId, ...common, status: 'active', roleId, hubId: [office.hubId], teamIds: [] }
  rows.push(
    [DATA_TYPES, { _id: dataTypeId, ...common, name: 'Type', type: 'custom', primaryKey: 'number', fields: [field] }],
    [USERS_TABLE, user],
    [ACCESS_USERS.name, { ...user, identityId: id('identity') }],
    [ACCESS_ROLES.name, { _id: roleId, ...common, name: 'Owner', permissions, permissionDetails: [] }],
  )
  await services.tables.commit(rows.map(([table, row]) => ({ table, scope: organizationId, id: row._id, row })))
}

/** One automation for each new task of the office's first flow. */
export const automate = async (
  services: OfficeServices,
  office: Office,
  automationType: string,
  details: JsonObject,
): Promise<void> => {
  const { keyring, clock } = services
  const data: AutomationCreated = {
    _id: office.automationId,
    organizationId: office.organizationId,
    content: {
      name: automationType,
      event: 'onTaskCreated',
      dataType: 'task',
      automationType,
      details: sealDetails(keyring, details),
      rules: { fields: { 'task.flowId': office.flowId }, schema: {} },
      isActive: true,
    },
    secret: sealSecret(keyring, newSecret(keyring, 'bench')),
    editorId: office.userId,
    at: clock.now() - 60_000,
  }
  await appendOne(services, office.organizationId, automationStream(office.automationId), AUTOMATION_CREATED, data)
}

/** Tasks of the office's first flow in the log, from that number on. */
export const addTasks = async (
  services: OfficeServices,
  office: Office,
  first: number,
  count: number,
): Promise<void> => {
  const { organizationId, flowId, hubId, userId } = office
  const add = (n: number): Promise<unknown> => {
    const createdBy = { type: 'user', id: userId }
    const values = {
      ...{ flowId, flowVersion: 1, title: `Task ${n}`, hubId, assigneeIds: [], tags: [], components: {} },
      ...{ priority: n % 10, state: 'new', createdBy },
    }
    const now = new Date(services.clock.now()).toISOString()
    const data = { organizationId, values, createdAt: now, at: now }
    return appendOne(services, organizationId, `task-${office.taskId(n)}`, eventTypes('task').created, data)
  }
  for (let from = 0; from < count; from += APPENDS_AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(APPENDS_AT_ONCE, count - from) }, (_, i) => add(first + from + i)))
}
