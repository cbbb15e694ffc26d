import { isDeepStrictEqual } from 'node:util'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid, type FieldError } from '../../kernel/errors.ts'
import { isObject, type Json, type JsonObject, pointerTo } from '../../kernel/json.ts'
import type { KnownResources } from '../../kit/resource/declaration.ts'
import { assertExists } from '../../kit/resource/references.ts'
import { GEOFENCE_GROUPS } from '../geofences/views.ts'
import type { ActionType, ActionTypes, Details, DetailsContext } from './action-type.ts'
import { isIdOf, pathFaults } from './event-table.ts'
import {
  EVENT_DATA_TYPES,
  isGeofenceEvent,
  type AutomationContent,
  type AutomationEvent,
  type Names,
} from './events.ts'
import { fieldsFault, ruleFault, schemaOf } from './rules.ts'

export interface CheckOptions {
  tables: Pick<TableStore, 'get' | 'getMany'>
  resources: Pick<KnownResources, 'declarationOf'>
  inRollout: (caller: UserCaller) => boolean
  actions: ActionTypes
}

/** A valid content, its details in clear. */
export type Checked = Omit<AutomationContent, 'details'> & { details: Details }

const NEEDS_TASK = ['moveTask', 'assignTask', 'updateTask']

/**
 * Checks a whole automation as its editor wants it (shape and required fields are checked by the schema of the route).
 * Unchanged parts that do not become active now are not refused: an automation whose group is gone, or whose
 * organization has left the rollout, can still be amended and deactivated.
 * @throws Failure invalid that names the field, forbidden for an action that the editor may not do, not_available for a
 * type whose action does not exist yet.
 */
export const checkAutomation = async (
  options: CheckOptions,
  caller: UserCaller,
  wanted: JsonObject,
  before?: Checked,
): Promise<Checked> => {
  const { name, automationType, isActive = true } = wanted as unknown as Checked & { isActive?: boolean }
  const event = wanted.event as AutomationEvent
  const dataType = EVENT_DATA_TYPES[event]
  if (wanted.dataType !== undefined && wanted.dataType !== dataType)
    throw invalid('/dataType', `must be ${dataType}, the data type of ${event}`)
  const fields = rulesFields(wanted.rules, isIdOf(options.resources, event))
  const same = before?.event === event ? before : undefined
  if (isGeofenceEvent(event)) {
    const isKept =
      same !== undefined && same.rules.fields.geofenceGroupId === fields.geofenceGroupId && (same.isActive || !isActive)
    if (automationType !== 'webhook') throw invalid('/automationType', 'must be webhook for a geofence event')
    if (!isKept) await checkGeofence(options, caller, fields)
  }
  const action = actionOf(options, automationType, event)
  const pathFault = pathFaults(options.resources, event)
  if (isActive) assertMayDo(caller, automationType, action)
  const details =
    before !== undefined && isAsBefore(wanted, fields, before)
      ? before.details
      : await action.check(
          wanted.automationDetails as JsonObject | undefined,
          {
            editor: caller,
            event,
            fields,
            tables: options.tables,
            pathFault,
          },
          before?.automationType === automationType ? before.details : undefined,
        )
  const names = namesIn(action, details)
  checkRules(pathFault, fields, same?.rules.fields ?? {})
  const rules = { fields, schema: schemaOf(fields) }
  return { name, event, dataType, automationType, details, rules, isActive, ...(names !== undefined && { names }) }
}

const checkGeofence = async (options: CheckOptions, caller: UserCaller, fields: JsonObject): Promise<void> => {
  if (!options.inRollout(caller)) throw invalid('/event', 'is not available to this organization')
  const { geofenceGroupId } = fields
  const path = '/rules/fields/geofenceGroupId'
  if (typeof geofenceGroupId !== 'string' || geofenceGroupId === '')
    throw invalid(path, 'is required for a geofence event: the id of one geofence group')
  await assertExists(options.tables, GEOFENCE_GROUPS, caller.organizationId, geofenceGroupId, path)
}

const actionOf = ({ actions }: CheckOptions, automationType: string, event: AutomationEvent): ActionType => {
  if (NEEDS_TASK.includes(automationType) && EVENT_DATA_TYPES[event] !== 'task')
    throw invalid('/automationType', `${automationType} needs a task event`)
  const action = actions[automationType]
  if (action !== undefined) return action
  throw new Failure('not_available', {
    message: `The automation type ${automationType} is not available on this server yet.`,
    errors: [{ path: '/automationType', message: 'is not available yet' }],
  })
}

/** Whether the change affects nothing that its details depend on, and does not activate the automation. */
const isAsBefore = (wanted: JsonObject, fields: JsonObject, before: Checked): boolean =>
  (before.isActive || wanted.isActive === false) &&
  wanted.event === before.event &&
  wanted.automationType === before.automationType &&
  isDeepStrictEqual(fields, before.rules.fields) &&
  isDeepStrictEqual(wanted.automationDetails, before.details)

/** Records that the details name, for deletions and notices; undefined if none. */
const namesIn = ({ names }: ActionType, details: Details): Names | undefined => {
  const named = Object.entries(names?.(details) ?? {}).map(([resource, value]): [string, string[]] => [
    resource,
    [...new Set([value].flat().flatMap((one) => (typeof one === 'string' ? [one.toLowerCase()] : [])))],
  ])
  const some = named.filter(([, ids]) => ids.length > 0)
  return some.length === 0 ? undefined : Object.fromEntries(some)
}

/** Editors may only automate actions that they may perform themselves. */
const assertMayDo = ({ permissions }: UserCaller, automationType: string, { needs }: ActionType): void => {
  const lacking = needs.filter((permission) => !permissions.has(permission))
  if (lacking.length === 0) return
  throw new Failure('forbidden', {
    message: `An active automation of the type ${automationType} needs the permission ${lacking.join(' and ')}.`,
    errors: [{ path: '/automationType', message: `needs the permission ${lacking.join(' and ')}` }],
  })
}

const checkRules = (
  pathFault: DetailsContext['pathFault'],
  fields: JsonObject,
  before: { [key: string]: unknown },
): void => {
  const whole = isDeepStrictEqual(fields, before) ? undefined : fieldsFault(fields)
  if (whole !== undefined) throw invalid('/rules/fields', whole)
  const errors: FieldError[] = Object.keys(fields).flatMap((key) => {
    if (Object.hasOwn(before, key) && isDeepStrictEqual(before[key], fields[key])) return []
    const message = ruleFault(key, fields[key]) ?? pathFault(key)
    return message === undefined ? [] : [{ path: `/rules/fields${pointerTo(key)}`, message }]
  })
  if (errors.length > 0) throw new Failure('invalid', { message: `${errors[0].path} ${errors[0].message}`, errors })
}

/** Ids in any case are kept in lower case, in which events have them. */
const rulesFields = (rules: Json | undefined, isId: (path: string) => boolean): JsonObject => {
  const fields = isObject(rules) && isObject(rules.fields) ? rules.fields : {}
  const kept = Object.entries(fields).map(([path, value]): [string, Json] => [
    path,
    typeof value === 'string' && isId(path) ? value.toLowerCase() : value,
  ])
  return Object.fromEntries(kept)
}
