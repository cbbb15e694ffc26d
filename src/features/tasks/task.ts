import type { Find } from '../../engines/table-store.ts'
import type { Json, JsonObject, JsonSchema } from '../../kernel/json.ts'
import {
  anyObject,
  type Field,
  id,
  integer,
  key,
  latitude,
  lines,
  list,
  longitude,
  newName,
  number,
  object,
  oneOf,
  optional,
  record,
  reference,
  text,
  time,
  withDefault,
} from '../../kernel/schema.ts'
import { fileIdsOf, withNamedFiles } from '../../kit/files/attached-file.ts'
import { BBOX_PARAMETER } from '../../kit/http/bbox-parameter.ts'
import type { ListFilter } from '../../kit/resource/list-filter.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { USERS_TABLE } from '../identity/views.ts'
import { placeOf } from './cells.ts'
import { COMPONENT_PARAMETERS, componentTermsOf } from './component-filters.ts'
import { isNobodys } from './moves.ts'
import {
  isOver,
  LATE,
  OPEN,
  OPEN_STATES,
  peopleOf,
  TASK_AUDIENCE,
  TASK_STATES,
  TASKS,
  type TaskState,
  type TaskValues,
} from './views.ts'
import { daysOf } from './window.ts'

export const ASSIGNEES_MAX = 50

const EXAMPLE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'

const place = object({ lat: latitude(), lng: longitude() })

const values: Field = {
  ...anyObject(),
  schema: {
    type: 'object',
    additionalProperties: true,
    maxProperties: 200,
    description: 'Values by the ids of the components of its flow.',
  },
}

/** Members that a task may lack. */
export const ABSENT = {
  field: 'absent',
  of: [
    'teamId',
    'assigneeIds',
    'tags',
    'externalId',
    'scheduleId',
    'routingResultId',
    'startedBy',
    'finishedBy',
    'window',
  ],
}

const isAbsent = (value: Json | undefined): boolean => value == null || (Array.isArray(value) && value.length === 0)

const absentIn = (values: JsonObject): JsonObject => ({
  [ABSENT.field]: ABSENT.of.filter((name) => isAbsent(values[name])),
})

/** A filter whose condition depends on the whole query (api.ts). */
const elsewhere = (schema: ListFilter['schema']): ListFilter => ({ schema, where: () => ({}) })

const equal =
  (field: string) =>
  (value: unknown): NonNullable<Find['where']> => ({ [field]: value as string })

/** A filter by a user: an id, or `me`. `others` may be named as well. */
export const byUser = (field: string, description: string, others: readonly JsonSchema[] = []): ListFilter => ({
  schema: { anyOf: [id().schema, { const: 'me' }, ...others], 'x-commas': true, description },
  several: true,
  where: (values, { userId }) => ({
    [field]: (values as string[]).map((one) => (one === 'me' ? userId : one.toLowerCase())),
  }),
})

/** What the service makes by itself has the name of one of its parts for an id. */
const SERVICE_PART: JsonSchema = { type: 'string', pattern: '^[a-z]+(-[a-z]+)+$', maxLength: 50 }

const TIME = { type: 'string', maxLength: 40 }

/** A task, created from a flow. Its moves are in moves.ts, its writes in task-writer.ts. */
export const task = defineResource({
  noun: 'task',
  plural: TASKS,
  tag: 'Tasks',
  fields: {
    flowId: reference('flows', { state: OPEN_STATES }),
    title: newName({ max: 200 }),
    description: optional(lines({ max: 5_000 })),
    hubId: reference('hubs'),
    teamId: optional(reference('teams')),
    assigneeIds: withDefault(list(reference('users'), { max: ASSIGNEES_MAX, unique: true }), []),
    lat: optional(latitude()),
    lng: optional(longitude()),
    address: optional(text({ max: 300 })),
    window: optional({ ...object({ from: time(), to: time() }), normalize: keptWindow }),
    priority: optional(integer({ min: 0, max: 9 })),
    durationMinutes: optional(number({ min: 0, max: 100_000 })),
    load: optional(record(number({ min: 0, max: 1e9 }), { max: 20 })),
    tags: withDefault(list(text({ max: 50 }), { max: 50, unique: true }), []),
    externalId: optional(key({ max: 200 })),
    components: withDefault(values, {}),
    dataSource: optional(object({ dataTypeId: id(), dataId: id() })),
  },
  fixed: ['flowId'],
  body: {
    amends: {
      at: optional({
        ...time(),
        schema: {
          ...time().schema,
          description: 'When the components were filled in, at the device: what was done without a connection holds.',
        },
      }),
    },
    bytesMax: 256 * 1024,
  },
  readOnly: {
    state: withDefault(oneOf(...TASK_STATES), 'new'),
    flowVersion: withDefault(integer({ min: 1 }), 1),
    createdBy: withDefault(object({ type: text({ max: 20 }), id: text({ max: 100 }) }), {
      type: 'user',
      id: EXAMPLE_ID,
    }),
    assignedAt: optional(time()),
    startedAt: optional(time()),
    startedBy: optional(id()),
    finishedAt: optional(time()),
    finishedBy: optional(id()),
    cancelledAt: optional(time()),
    cancelReason: optional(text({ max: 500 })),
    reopenReason: optional(text({ max: 500 })),
    startedPlace: optional(place),
    finishedPlace: optional(place),
    dueAt: optional(time()),
    scheduleId: optional(id()),
    routingResultId: optional(reference('routingResults')),
  },
  guarded: {
    state: 'is changed by the operations assign, start, finish, cancel and reopen, such as POST /task/{id}/start',
  },
  internal: {
    files: { schema: { type: 'array', items: { type: 'object' } } },
    late: { schema: { type: 'array', items: { type: 'object' } } },
    overtaken: { schema: { type: 'array', items: { type: 'integer' } } },
    handedAt: { schema: { type: 'string' } },
    filledAtMs: { schema: { type: 'object' } },
  },
  permissions: { view: 'view/task', edit: 'edit/task' },
  hubField: 'hubId',
  audience: TASK_AUDIENCE,
  unique: { field: 'externalId' },
  table: {
    version: 8,
    indexes: {
      equality: [
        'state',
        'flowId',
        'teamId',
        'scheduleId',
        'routingResultId',
        'externalId',
        'priority',
        'dataId',
        'createdById',
        'startedBy',
        'finishedBy',
        'componentTerms',
        'timeliness',
        'tags',
        'people',
        'days',
        'cells',
        'fileIds',
        ABSENT.field,
      ],
      range: ['title', 'priority', 'dueAt', 'finishedAt', 'windowFrom', 'windowTo'],
      sparse: ['placeLat', 'placeLng', 'openUntil'],
      text: ['title', 'description', 'address'],
    },
    derived: (values) => ({ ...derivedOf(values), ...absentIn(values) }),
  },
  list: {
    absent: ABSENT,
    sorts: { 'window.from': 'windowFrom', 'window.to': 'windowTo' },
    filters: {
      assigneeId: byUser('assigneeIds', 'Tasks of this user; `me` means the caller.'),
      createdBy: byUser(
        'createdById',
        'Tasks that this user, service account, automation, schedule, import or part of the service (`make-samples`) made.',
        [SERVICE_PART],
      ),
      startedBy: byUser('startedBy', 'Tasks that this user started.'),
      finishedBy: byUser('finishedBy', 'Tasks that this user finished.'),
      dataId: {
        schema: { type: 'string', format: 'uuid', description: 'Tasks whose data source is this record.' },
        several: true,
        where: equal('dataId'),
      },
      from: elsewhere({
        ...TIME,
        description: 'Tasks whose window ends then or later: RFC 3339, or milliseconds since the epoch.',
      }),
      to: elsewhere({
        ...TIME,
        description: 'Tasks whose window begins then or earlier: RFC 3339, or milliseconds since the epoch.',
      }),
      finishedFrom: elsewhere({
        ...TIME,
        description: 'Tasks that were finished then or later: RFC 3339, or milliseconds since the epoch.',
      }),
      finishedTo: elsewhere({
        ...TIME,
        description: 'Tasks that were finished then or earlier: RFC 3339, or milliseconds since the epoch.',
      }),
      bbox: elsewhere(BBOX_PARAMETER),
    },
    patterns: COMPONENT_PARAMETERS,
  },
  deletion: { keepsNaming: ({ state }, plural) => plural === USERS_TABLE && isOver({ state: state as TaskState }) },
  rules: {
    keep: async ({ values }) =>
      withNamedFiles(withState(values), Object.values(values.components as JsonObject).flat()),
  },
  example: {
    flowId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
    title: 'Deliver 3 parcels',
    hubId: EXAMPLE_ID,
    lat: 52.23,
    lng: 20.98,
    address: 'Wolska 1, Warszawa',
    window: { from: '2026-11-20T08:00:00.000Z', to: '2026-11-20T10:00:00.000Z' },
    priority: 5,
    durationMinutes: 10,
    load: { boxes: 3 },
    tags: ['cooled'],
    externalId: 'order-1001',
  },
})

/** Deleting a user or team may leave no assignee: an assigned task becomes new again. */
const withState = (values: JsonObject): JsonObject => {
  if (values.state !== 'assigned' || !isNobodys(values as unknown as TaskValues)) return values
  const { assignedAt: _assignedAt, ...others } = values
  return { ...others, state: 'new' }
}

const derivedOf = (values: JsonObject): JsonObject => {
  const { files, assigneeIds, teamId, dataSource, window, lat, lng, createdBy, components } = values
  const span = window as { from: string; to: string } | undefined
  const source = dataSource as { dataId: string } | undefined
  const hasPlace = typeof lat === 'number' && typeof lng === 'number'
  return {
    people: peopleOf({ assigneeIds, teamId } as TaskValues),
    createdById: (createdBy as { id: string } | undefined)?.id ?? '',
    componentTerms: componentTermsOf((components ?? {}) as JsonObject),
    ...lateness(values as unknown as TaskValues),
    ...fileIdsOf(files === undefined ? {} : { files }),
    ...(source !== undefined && { dataId: source.dataId }),
    ...(span !== undefined && { windowFrom: span.from, windowTo: span.to, days: daysOf(span.from, span.to) }),
    ...(hasPlace && placeOf(lat, lng)),
  }
}

/** A task is late if it was finished after its window, or is open past it. */
const lateness = ({ state, window, finishedAt }: TaskValues): JsonObject => {
  if (window === undefined || state === 'cancelled') return {}
  if (state !== 'finished') return { timeliness: OPEN, openUntil: window.to }
  return finishedAt !== undefined && finishedAt > window.to ? { timeliness: LATE } : {}
}

function keptWindow(value: unknown): JsonObject {
  const { from, to } = value as { from: string | number; to: string | number }
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}
