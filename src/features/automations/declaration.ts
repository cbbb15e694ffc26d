import type { JsonObject } from '../../kernel/json.ts'
import {
  anyObject,
  bool,
  type Field,
  list,
  newName,
  object,
  oneOf,
  optional,
  reference,
  text,
  time,
  withDefault,
} from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { EVENT_DATA_TYPES } from './events.ts'
import type { ActionTypes } from './action-type.ts'
import { NOTICES } from './notice.ts'
import { openDetails } from './sealed.ts'
import { AUTOMATIONS, type AutomationRow } from './views.ts'

const AUTOMATION_TYPES = [
  'createTask',
  'createAndAssignTask',
  'moveTask',
  'assignTask',
  'updateTask',
  'webhook',
  'createOrUpdateDataSource',
  'notification',
] as const

const details: Field = {
  schema: {
    ...anyObject().schema,
    description: [
      'createTask: `{flowId, hubId?, task}`, without a hub that of the event; createAndAssignTask: the same with `assigneeIds` or `teamId`.',
      "moveTask: `{hubId}`; assignTask: `{assigneeIds}` or `{teamId}`; updateTask: `{components}`; all three of the event's task.",
      'createOrUpdateDataSource: `{dataTypeId, values}`, matched by the primary key.',
      'notification: `{channel: email|chat|inApp, to, subject?, text}`: `to` is one recipient or an array of at most 200: ids of users, `{roleId}`, `{ref: path}` to users or, for email, to an address, for email also addresses, for chat only urls of incoming webhooks, which are answered without what is secret in them; users who may not see what the event is about are left out; `subject` and `text` are Mustache templates.',
      'webhook: `{url, headers}`; headers as an array of `{key, value}` or as an object. Their values are answered as `***`, and `***` sent back keeps the value. The create answers `secret`, once.',
      'A value, at any depth of `task`, `components` and `values`, and `hubId`, `teamId` and `assigneeIds`, is static, `{ref: path}` into the data of the event, or `{fromDataSource: field}` of the record of its task.',
    ].join('\n'),
  },
}

const NOTICE = object({
  reason: oneOf(...Object.keys(NOTICES)),
  message: text({ max: 200 }),
  at: optional({ ...time(), description: 'When the service deactivated it.' } as Field),
})

const rules: Field = {
  schema: {
    type: 'object',
    properties: {
      fields: {
        ...anyObject().schema,
        description:
          'Paths into the data of the event, each with the value that it must have, or with the JSON Schema of that value.',
      },
      schema: { description: 'Made from `fields`; what is sent is replaced.' },
    },
    additionalProperties: false,
  },
}

const EXAMPLE: JsonObject = {
  name: 'Tell the yard',
  event: 'onGeofenceEntry',
  dataType: 'locationHistory',
  automationType: 'webhook',
  automationDetails: { url: 'https://example.com/hook', headers: [{ key: 'x-yard', value: '7' }] },
  rules: { fields: { geofenceGroupId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' } },
  isActive: true,
}

/** Performs an action when an event occurs. Writes: write-automation.ts; table: projections/automations.ts. */
export const automationResource = defineResource({
  noun: 'automation',
  plural: AUTOMATIONS.name,
  tag: 'Automations',
  fields: {
    name: newName({ max: 200 }),
    event: oneOf(...Object.keys(EVENT_DATA_TYPES)),
    dataType: optional(oneOf('task', 'data', 'routingResult', 'locationHistory')),
    automationType: oneOf(...AUTOMATION_TYPES),
    automationDetails: optional(details),
    rules: optional(rules),
    isActive: withDefault(bool(), true),
  },
  readOnly: {
    activatedAt: optional(time()),
    notice: optional(NOTICE),
  },
  // The group of a geofence event, and records named in the details, cannot be deleted before the automation.
  internal: {
    geofenceGroupId: optional(reference('geofenceGroups')),
    flowIds: optional(list(reference('flows'), { max: 1 })),
    hubIds: optional(list(reference('hubs'), { max: 1 })),
    dataTypeIds: optional(list(reference('dataTypes'), { max: 1 })),
  },
  permissions: { view: 'view/automation', edit: 'edit/automation' },
  table: {
    indexes: {
      equality: AUTOMATIONS.equality,
      range: AUTOMATIONS.range,
      text: AUTOMATIONS.text,
    },
  },
  example: EXAMPLE,
  list: {
    filters: {
      geofenceGroupId: {
        schema: { type: 'string', format: 'uuid' },
        several: true,
        where: (geofenceGroupId) => ({ geofenceGroupId: geofenceGroupId as string[] }),
      },
    },
  },
})

/** An automation as answers show it: without its secret and the dispatcher's lookup fields. */
export const showAutomation = (
  { actions, keyring }: { actions: ActionTypes; keyring: Keyring },
  row: AutomationRow,
): Row => {
  const { _id, organizationId, name, event, dataType, automationType, rules, isActive, activatedAt, notice } = row
  const { version, createdAt, updatedAt } = row
  return {
    _id,
    organizationId,
    name,
    event,
    dataType,
    automationType,
    automationDetails: actions[automationType]?.show(openDetails(keyring, row)) ?? {},
    rules,
    isActive,
    ...(isActive && { activatedAt: new Date(activatedAt).toISOString() }),
    ...(notice !== undefined && { notice: { ...notice, message: NOTICES[notice.reason] } }),
    version,
    createdAt,
    updatedAt,
  }
}
