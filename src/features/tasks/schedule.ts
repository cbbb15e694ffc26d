import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import {
  bool,
  integer,
  list,
  newName,
  object,
  optional,
  reference,
  text,
  time,
  timeZone,
  withDefault,
} from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import type { ListFilter } from '../../kit/resource/list-filter.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { repeat } from '../../kit/recurrence/repeat.ts'
import { dueRows } from '../../kit/resource/due-rows.ts'
import { assertOneForm, nextAfter, type Recurrence, recurrenceFault } from '../../kit/recurrence/recurrence.ts'
import { assertContent } from './schedule-content.ts'
import { DUE_SCHEDULES, type DueScheduleRow, SCHEDULES } from './schedule-views.ts'
import { byUser, task } from './task.ts'

const { flowId: _flowId, externalId: _externalId, window: _window, ...content } = task.declaration.fields
/** Least time between two tasks of one schedule. */
const GAP_MINUTES_MIN = 1
const minutes = (max: number) => integer({ min: 0, max })

/** A task's body without its flow; its window is relative to the due time. */
const taskContent = object({
  ...content,
  // A PUT without it keeps it; a create without it is refused in the schedule's rules.
  hubId: optional(content.hubId),
  window: optional(object({ afterMinutes: integer({ min: -10_080, max: 10_080 }), lengthMinutes: minutes(44_640) })),
  leadMinutes: optional(minutes(44_640)),
})

const waiting = dueRows('schedule', DUE_SCHEDULES, (values): Omit<DueScheduleRow, 'organizationId'> | undefined =>
  values.isActive === true && values.nextAt !== undefined ? { makeAt: makeAtOf(values) } : undefined,
)

/** Creation time of a schedule's next task: its due time minus the schedule's lead. */
export const makeAtOf = ({ nextAt, task: body }: JsonObject): number =>
  Date.parse(String(nextAt)) - Number((body as JsonObject).leadMinutes ?? 0) * 60_000

const filterOf = (field: string, noun: string): ListFilter => ({
  schema: { type: 'string', format: 'uuid', description: `Those whose tasks are of this ${noun}.` },
  several: true,
  where: (values) => ({ [field]: values as string[] }),
})

/** Creates tasks repeatedly. The tasks are created by reactors/schedules. */
export const schedule = defineResource(
  {
    noun: 'schedule',
    plural: SCHEDULES,
    tag: 'Task schedules',
    paths: { one: '/task/schedule', many: '/task/schedules' },
    fields: {
      name: newName({ max: 100 }),
      flowId: reference('flows'),
      rrule: optional(text({ max: 500 })),
      repeat: optional(repeat),
      timeZone: timeZone(),
      startTime: time(),
      endTime: optional(time()),
      task: taskContent,
      isActive: withDefault(bool(), true),
    },
    readOnly: { nextAt: optional(time()), notice: optional(text({ max: 1_000 })) },
    internal: {
      hubId: reference('hubs'),
      teamId: optional(reference('teams')),
      assigneeIds: list(reference('users'), { max: 50 }),
    },
    body: {
      paths: { hubId: '/task/hubId', teamId: '/task/teamId', assigneeIds: '/task/assigneeIds' },
      of: (values) => whole(values) as JsonObject,
      bytesMax: 256 * 1024,
    },
    permissions: { view: 'view/schedule', edit: 'edit/schedule' },
    hubField: 'hubId',
    table: { indexes: { equality: ['name', 'isActive'], range: ['name', 'nextAt'], text: ['name'] } },
    list: {
      filters: {
        hubId: filterOf('hubId', 'hub'),
        teamId: filterOf('teamId', 'team'),
        assigneeId: byUser('assigneeIds', 'Those whose tasks are of this user; `me` means the caller.'),
      },
    },
    example: {
      name: 'Morning round',
      flowId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
      repeat: { period: 'weekly', every: 1, weekdays: ['mon', 'thu'], at: '07:30' },
      timeZone: 'Europe/Warsaw',
      startTime: '2026-11-20T00:00:00.000Z',
      task: {
        title: 'Read the meters',
        hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
        window: { afterMinutes: 0, lengthMinutes: 120 },
        leadMinutes: 60,
      },
    },
    rules: { keep: async (write) => kept(write), checks: (write) => assertContent(write) },
    present: (rows) => rows.map(whole),
  },
  waiting,
)

/** Stores people and hub apart, so that deletions remove them. Changed or activated schedules begin now. */
const kept = ({ values, before, now }: WriteContext): JsonObject => {
  assertOneForm(values)
  const { hubId, teamId, assigneeIds, ...body } = values.task as JsonObject
  const isChanged = before === undefined || !isDeepStrictEqual(timesOf(values), timesOf(before))
  if (isChanged) {
    if (String(values.endTime ?? values.startTime) < String(values.startTime))
      throw invalid('/endTime', 'must not be before startTime')
    const fault = recurrenceFault(recurrenceOf(values), GAP_MINUTES_MIN)
    if (fault !== undefined) throw invalid(values.rrule === undefined ? '/repeat' : '/rrule', fault)
  }
  const hub = hubId ?? values.hubId ?? before?.hubId
  if (typeof hub !== 'string') throw invalid('/task/hubId', 'is required')
  const team = teamId ?? values.teamId
  const { teamId: _team, nextAt: wasNext, ...others } = values
  const beginsAnew = isChanged || values.isActive !== before.isActive
  const nextAt = beginsAnew ? nextDue(values, now) : wasNext
  return {
    ...others,
    ...(nextAt !== undefined && { nextAt }),
    task: body,
    hubId: hub.toLowerCase(),
    ...(team !== undefined && { teamId: team }),
    assigneeIds: assigneeIds ?? values.assigneeIds ?? [],
  }
}

export const recurrenceOf = (values: JsonObject): Recurrence => values as unknown as Recurrence

const timesOf = ({ rrule, repeat, timeZone: zone, startTime, endTime }: JsonObject): Json => [
  rrule ?? null,
  repeat ?? null,
  zone,
  startTime,
  endTime ?? null,
]

/** Next due time after a moment; undefined if there is none. */
export const nextDue = (values: JsonObject, afterMs: number): string | undefined =>
  nextAfter(recurrenceOf(values), afterMs)

const whole = ({ hubId, teamId, assigneeIds, ...row }: Row): Row => ({
  ...row,
  hubId,
  task: { ...(row.task as object), hubId, assigneeIds, ...(teamId !== undefined && { teamId }) },
})
