import { type Conditions, type Counted, type Grouping, pagesOf, type TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { ZonedTime } from '../../kernel/zoned-time.ts'
import { rowsAsked } from '../../kit/http/answer-list.ts'
import { chooseFields, LIMIT_MAX, type ListQuery, listQuerySchema, valuesOf } from '../../kit/http/list-query.ts'
import { answered, dataAnswer } from '../../kit/http/page-members.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { listShape } from '../../kit/resource/rows.ts'
import { timeZoneOf } from '../identity/views.ts'
import { taskConditions } from './conditions.ts'
import type { ExternalIdServices } from './external-ids.ts'
import { ABSENT, task } from './task.ts'
import { isLate, LATE, OPEN, TASK_STATES, TASKS, type TaskRow } from './views.ts'

type Tables = Pick<TableStore, 'find' | 'get' | 'countBy'>

/** Fields of a row by the names in `groupBy`; days are computed. */
const GROUPS = {
  state: 'state',
  flowId: 'flowId',
  hubId: 'hubId',
  teamId: 'teamId',
  assigneeId: 'assigneeIds',
  day: undefined,
} as const

type GroupBy = keyof typeof GROUPS
type SummaryQuery = ListQuery & { groupBy: GroupBy }

const SHAPE = listShape(task.declaration)
const DAY_MS = 86_400_000
/** Years of four digits: other times are written with a sign, and sort before all others. */
const FIRST_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')
/** Sorts after every time. */
const AFTER_ALL_TIMES = ':'
/** Lateness has a resolution of a second, so that requests within one share cached results. */
const SECOND_MS = 1_000

const QUERY = ((): JsonSchema => {
  const schema = listQuerySchema(SHAPE)
  const { limit, page, cursor, sortBy, sortOrder, ...filters } = schema.properties as {
    [name: string]: JsonSchema
  }
  const groupBy = {
    type: 'string',
    enum: Object.keys(GROUPS),
    description:
      "`day`: of the beginning of the window, else of the creation, in the organization's time zone. By `assigneeId` a task counts for each of its assignees.",
  }
  return { ...schema, properties: { groupBy, ...filters }, required: ['groupBy'] }
})()

const GROUP = answered('TaskGroup', {
  key: { type: ['string', 'null'], description: 'Null: tasks without one.' },
  count: { type: 'integer' },
  late: { type: 'integer', description: 'Finished after the end of their window, or open past it.' },
})

interface Group {
  key: string | null
  count: number
  late: number
}

/** Number of tasks per state, hub, day, …, among those that the caller sees and the filters select. */
export const summaryRoute = (services: ExternalIdServices & { tables: Tables }): Route => {
  const { tables } = services
  const conditionsOf = taskConditions(services)
  return route<SummaryQuery>({
    method: 'GET',
    path: '/tasks/summary',
    operationId: 'summarizeTasks',
    summary: 'Count tasks by state, flow, hub, team, assignee or day',
    description: 'Takes the filters of the list. Groups without tasks are left out.',
    tag: task.declaration.tag,
    access: { permission: task.declaration.permissions.view },
    query: QUERY,
    answers: {
      200: dataAnswer('Groups, in the order of their keys.', { type: 'array', items: GROUP }, [
        { key: 'assigned', count: 12, late: 1 },
      ]),
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { groupBy, fields, ...query } = request.query
      const show = chooseFields(['key', 'count', 'late'], fields, 'key')
      const asked = rowsAsked(SHAPE, { caller, query, ...(await conditionsOf(query, caller)) })
      if (asked === undefined) return { body: { data: [] } }
      const now = new Date(Math.floor(request.now / SECOND_MS) * SECOND_MS).toISOString()
      const counting = { tables, caller, conditions: asked.conditions, now, days: await daysOf(tables, caller) }
      const groups =
        asked.keep === undefined ? await counted(counting, groupBy) : await walked(counting, groupBy, asked.keep)
      return { body: { data: inOrder(groups, groupBy).map((group) => show({ ...group })) } }
    },
  })
}

interface Counting {
  tables: Tables
  caller: UserCaller
  conditions: Conditions
  /** RFC 3339. */
  now: string
  days: LocalDays
}

const counted = async (counting: Counting, groupBy: GroupBy): Promise<Map<string | null, Group>> => {
  const { days, conditions } = counting
  const groups = new Map<string | null, Group>()
  const add = (key: string | null, [count, ...late]: readonly number[]): void => {
    const group = groups.get(key) ?? { key, count: 0, late: 0 }
    groups.set(key, { key, count: group.count + count, late: late.reduce((sum, one) => sum + one, group.late) })
  }
  const byDay = async (field: string, of: Conditions): Promise<void> => {
    const stepOf = (value: string): { last: string; next: string } => days.boundsOf(value)
    for (const { value, counts } of await countsOf(counting, of, { field, stepOf })) add(days.of(String(value)), counts)
  }
  if (groupBy === 'day') {
    await byDay('windowFrom', conditions)
    await byDay('createdAt', without(conditions, 'window'))
    return groups
  }
  const field = GROUPS[groupBy]
  for (const { value, counts } of await countsOf(counting, conditions, { field })) add(String(value), counts)
  // Each of these tasks has one state: those without a team or assignee are counted by it.
  if (ABSENT.of.includes(field))
    for (const { counts } of await countsOf(counting, without(conditions, field), { field: 'state' })) add(null, counts)
  return groups
}

/** All tasks, those finished late, and those open past their window. */
const countsOf = ({ tables, caller, now }: Counting, all: Conditions, grouping: Grouping): Promise<Counted[]> => {
  const timely = (timeliness: string): Conditions => ({ ...all, every: { ...all.every, timeliness: [timeliness] } })
  // Each open task with a window has an end.
  const past = { field: 'openUntil', to: new Date(Date.parse(now) - 1).toISOString(), keptWithin: {} }
  const late = [timely(LATE), { ...timely(OPEN), ranges: [...(all.ranges ?? []), past] }]
  return tables.countBy(TASKS, caller.organizationId, [all, ...late], grouping)
}

const without = (conditions: Conditions, field: string): Conditions => ({
  ...conditions,
  every: { ...conditions.every, [ABSENT.field]: [...(conditions.every?.[ABSENT.field] ?? []), field] },
})

/** Counts row by row if no index suffices. */
const walked = async (
  { tables, caller, conditions, now, days }: Counting,
  groupBy: GroupBy,
  keep: (row: Row) => boolean,
): Promise<Map<string | null, Group>> => {
  const groups = new Map<string | null, Group>()
  for await (const page of pagesOf<TaskRow>(tables, TASKS, caller.organizationId, { ...conditions, limit: LIMIT_MAX }))
    for (const { row } of page.filter((one) => keep(one.row)))
      for (const key of keysOf(row, groupBy, days)) {
        const { count, late } = groups.get(key) ?? { count: 0, late: 0 }
        groups.set(key, { key, count: count + 1, late: late + (isLate(row, now) ? 1 : 0) })
      }
  return groups
}

const keysOf = (row: TaskRow, groupBy: GroupBy, days: LocalDays): readonly (string | null)[] => {
  if (groupBy === 'day') return [days.of(row.window?.from ?? row.createdAt)]
  const values = valuesOf(row, GROUPS[groupBy])
  return values.length === 0 ? [null] : values
}

const inOrder = (groups: ReadonlyMap<string | null, Group>, groupBy: GroupBy): Group[] => {
  const placeOf = ({ key }: Group): string =>
    groupBy === 'state' ? String((TASK_STATES as readonly unknown[]).indexOf(key)) : (key ?? '\uffff')
  return [...groups.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
}

const daysOf = async (tables: Tables, { organizationId }: UserCaller): Promise<LocalDays> =>
  new LocalDays(await timeZoneOf(tables, organizationId))

/** Days of a time zone, which may have 23 hours, or 25. */
class LocalDays {
  private readonly zone: ZonedTime

  constructor(timeZone: string) {
    this.zone = new ZonedTime(timeZone)
  }

  /** The day of a moment, `2026-11-20`. */
  of(at: string): string {
    const ms = Date.parse(at)
    const localMs = Math.min(Math.max(ms + this.zone.offsetAt(ms), FIRST_MS), LAST_MS)
    return new Date(localMs).toISOString().slice(0, 10)
  }

  /** The last moment of that day, and the first one of the next. */
  boundsOf(at: string): { last: string; next: string } {
    const nextDayMs = Date.parse(this.of(at)) + DAY_MS
    if (nextDayMs > LAST_MS) return { last: new Date(LAST_MS).toISOString(), next: AFTER_ALL_TIMES }
    const nextMs = this.zone.momentOf(nextDayMs)
    return { last: new Date(nextMs - 1).toISOString(), next: new Date(nextMs).toISOString() }
  }
}
