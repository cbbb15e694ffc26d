import type { JsonSchema } from '../../kernel/json.ts'
import { DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { rowSchema } from '../../kit/resource/schemas.ts'
import type { KnownResources } from '../../kit/resource/declaration.ts'
import { POINT_ROW } from '../locations/schemas.ts'
import { TRIP } from '../trips/schemas.ts'
import { EVENT_DATA_TYPES, type AutomationEvent, type Subject } from './events.ts'

export interface EventKind {
  subject: Subject['type']
  permission: string
  /** Whether rules may name the previous state, as `old.<path>`. */
  hasBefore: boolean
  /** Schemas of its data's members besides `organizationId`, as webhooks carry them and rules name them. */
  data(resources: Pick<KnownResources, 'declarationOf'>): Members
}

type Members = { [member: string]: JsonSchema }

const TEXT: JsonSchema = { type: 'string' }
const NUMBER: JsonSchema = { type: 'number' }
const ANY: JsonSchema = {}

const object = (properties: Members): JsonSchema => ({ type: 'object', properties })
const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })

const RECORD_MEMBERS: Members = {
  _id: UUID,
  organizationId: UUID,
  version: { type: 'integer' },
  createdAt: DATE_TIME,
  updatedAt: DATE_TIME,
}

// Members as the API contract has them.
const TASK = object({
  ...RECORD_MEMBERS,
  flowId: UUID,
  flowVersion: { type: 'integer' },
  title: TEXT,
  description: TEXT,
  state: { type: 'string', enum: ['new', 'assigned', 'inProgress', 'finished', 'cancelled'] },
  hubId: UUID,
  teamId: UUID,
  assigneeIds: list(UUID),
  lat: NUMBER,
  lng: NUMBER,
  address: TEXT,
  window: object({ from: DATE_TIME, to: DATE_TIME }),
  priority: { type: 'integer' },
  durationMinutes: NUMBER,
  load: ANY,
  tags: list(TEXT),
  externalId: TEXT,
  components: ANY,
  dataSource: object({ dataTypeId: UUID, dataId: UUID }),
  createdBy: ANY,
  assignedAt: DATE_TIME,
  startedAt: DATE_TIME,
  startedBy: UUID,
  finishedAt: DATE_TIME,
  finishedBy: UUID,
  cancelledAt: DATE_TIME,
  dueAt: DATE_TIME,
  scheduleId: UUID,
  routingResultId: UUID,
})

const RECORD = object({ ...RECORD_MEMBERS, dataTypeId: UUID, values: ANY })

const DATA_TYPE = object({ ...RECORD_MEMBERS, name: TEXT, primaryKey: TEXT, fields: list(ANY) })

const VISIT = object({
  taskId: UUID,
  arrivalAt: DATE_TIME,
  departureAt: DATE_TIME,
  actualArrivalAt: DATE_TIME,
  actualDepartureAt: DATE_TIME,
  distanceMeters: NUMBER,
})

const ROUTING_RESULT = object({
  ...RECORD_MEMBERS,
  name: TEXT,
  hubId: UUID,
  source: { type: 'string', enum: ['planner', 'import', 'external'] },
  state: { type: 'string', enum: ['planning', 'planned', 'failed', 'dispatched', 'completed'] },
  routes: list(
    object({ vehicleId: UUID, userId: UUID, distanceMeters: NUMBER, durationSeconds: NUMBER, visits: list(VISIT) }),
  ),
  unassigned: list(object({ taskId: UUID, reason: TEXT })),
})

const task = (hasBefore: boolean): EventKind => ({
  subject: 'task',
  permission: 'view/task',
  hasBefore,
  data: () => ({ task: TASK, before: hasBefore ? TASK : { type: 'null' } }),
})

const record: EventKind = {
  subject: 'record',
  permission: 'view/data',
  hasBefore: false,
  data: () => ({ record: RECORD, dataType: DATA_TYPE }),
}

const routingResult: EventKind = {
  subject: 'routingResult',
  permission: 'view/routing',
  hasBefore: false,
  data: () => ({ routingResult: ROUTING_RESULT }),
}

/** A row in an event: hidden from the editor or erased, it has only its id. */
const asShown = (schema: JsonSchema): JsonSchema => ({ ...schema, required: ['_id'] })

const trackerMembers = (resources: Pick<KnownResources, 'declarationOf'>): Members => ({
  trackerId: UUID,
  tracker: asShown(rowSchema(resources.declarationOf('trackers'))),
  user: asShown(rowSchema(resources.declarationOf('users'))),
  at: DATE_TIME,
  point: POINT_ROW,
})

const trip: EventKind = {
  subject: 'tracker',
  permission: 'view/location-history',
  hasBefore: false,
  data: (resources) => ({ ...trackerMembers(resources), trip: TRIP }),
}

const transition: EventKind = {
  subject: 'tracker',
  permission: 'view/geofence',
  hasBefore: false,
  data: (resources) => ({
    ...trackerMembers(resources),
    transitionId: UUID,
    geofenceId: UUID,
    geofenceGroupId: UUID,
    geofence: asShown(withoutGeometry(rowSchema(resources.declarationOf('geofences')))),
    cause: { type: 'string', enum: ['point', 'geofence', 'tracker'] },
  }),
}

export const EVENTS: { readonly [event in AutomationEvent]: EventKind } = {
  onTaskCreated: task(false),
  onTaskAssigned: task(true),
  onTaskFinished: task(true),
  onDataSourceCreated: record,
  onRoutingResultFinished: routingResult,
  onRoutingResultDispatched: routingResult,
  onStartTrip: trip,
  onFinishTrip: trip,
  onGeofenceEntry: transition,
  onGeofenceLeave: transition,
}

/** Members that hold a geofence's geometry: left out of events, because it may have 20,000 positions. */
export const GEOMETRY_MEMBERS: readonly string[] = ['geometry', 'center', 'radius', 'width', 'bbox']

export const eventDataSchema = (resources: Pick<KnownResources, 'declarationOf'>, event: AutomationEvent): JsonSchema =>
  object({ organizationId: UUID, ...EVENTS[event].data(resources) })

/**
 * Explains why a path (`tracker.name`, `old.task.state`) names nothing in the data of an event, and which names exist;
 * undefined if it may name something.
 */
export const pathFaults = (
  resources: Pick<KnownResources, 'declarationOf'>,
  event: AutomationEvent,
): ((path: string) => string | undefined) => {
  const data = eventDataSchema(resources, event)
  const { before } = data.properties as Members
  const old = EVENTS[event].hasBefore ? object({ [EVENT_DATA_TYPES[event]]: before }) : undefined
  return (path) => {
    const steps = path.split('.')
    if (steps[0] !== 'old') return stepFault(event, data, steps, 0)
    if (old === undefined) return `must not begin with old: ${event} has no state before`
    return stepFault(event, old, steps, 1)
  }
}

/** Whether a path names an id in the data of an event. */
export const isIdOf = (
  resources: Pick<KnownResources, 'declarationOf'>,
  event: AutomationEvent,
): ((path: string) => boolean) => {
  const data = eventDataSchema(resources, event)
  return (path) =>
    path
      .replace(/^old\./, '')
      .split('.')
      .reduce<JsonSchema | undefined>(memberOf, data)?.format === 'uuid'
}

const memberOf = (schema: JsonSchema | undefined, step: string): JsonSchema | undefined => {
  const { properties = {}, items } = schema ?? {}
  return Object.hasOwn(properties as Members, step) ? (properties as Members)[step] : (items as JsonSchema | undefined)
}

const MEMBERS_SHOWN_MAX = 40

const stepFault = (
  event: AutomationEvent,
  { type, properties, items }: JsonSchema,
  steps: readonly string[],
  at: number,
): string | undefined => {
  if (at === steps.length) return undefined
  const step = steps[at]
  if (items !== undefined && /^\d{1,6}$/.test(step)) return stepFault(event, items as JsonSchema, steps, at + 1)
  if (properties === undefined && items === undefined && (type === undefined || type === 'object')) return undefined
  const members = (properties ?? {}) as Members
  if (Object.hasOwn(members, step)) return stepFault(event, members[step], steps, at + 1)
  const parent = at === 0 ? 'it' : steps.slice(0, at).join('.')
  const names = Object.keys(members).slice(0, MEMBERS_SHOWN_MAX).join(', ')
  return `is no path in the data of ${event}: ${parent} has ${names === '' ? 'no members' : names}`
}

const withoutGeometry = ({ properties, ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(properties as Members).filter(([name]) => !GEOMETRY_MEMBERS.includes(name)),
  ),
})
