import type { Clock } from '../../kernel/clock.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import type { HistoryParameters, HistoryStore } from '../history-store.ts'
import type { Find, Found, StoredRow, TableStore } from '../table-store.ts'
import { timeOf } from './layout.ts'
import { AUDIT, RUNS, TRIPS } from './history-tables.ts'
import { readAttempts, readState, STATUS_SQL } from './runs.ts'

/** A table of the history that backs lists: one row for each id, in the order of a time. */
interface Listed {
  table: string
  /** Its column of time, and the member that answers its milliseconds. */
  time: string
  /** The member that orders rows of the same millisecond; default `_id`. */
  tie?: string
  /** Condition of a complete row, as SQL: of others only the end is known. */
  isWhole: string
  /** Members of a row, as SQL. */
  members: { [member: string]: string }
  /** Members that are lists: one of the requested values must be in them. */
  lists?: readonly string[]
  /** Restores values that the engine's JSON cannot express. */
  revive(row: Row): Row
}

const LISTED: { [name: string]: Listed } = {
  trips: {
    table: TRIPS,
    time: 'startedAt',
    isWhole: '1',
    members: {
      _id: '_id',
      trackerId: 'trackerId',
      explicit: 'explicit',
      state: "if(finishedAtMs = 0, 'running', 'finished')",
      startedAt: 'toUnixTimestamp64Milli(startedAt)',
      finishedAt: 'if(finishedAtMs = 0, NULL, finishedAtMs)',
      distance: 'distance',
    },
    revive: (row) => ({ ...row, explicit: row.explicit === 1 }),
  },
  automationRuns: {
    table: RUNS,
    time: 'createdAt',
    isWhole: "automationId != ''",
    members: {
      _id: '_id',
      organizationId: 'organizationId',
      automationId: 'automationId',
      subjectId: 'subjectId',
      audience: 'audience',
      event: 'event',
      partition: 'partition',
      sequence: 'sequence',
      trigger: 'trigger',
      status: STATUS_SQL,
      stateText: 'state',
      attempts: 'attempts',
      createdAt: 'toUnixTimestamp64Milli(createdAt)',
    },
    revive: ({ stateText, attempts, trigger, audience: _audience, event: _event, ...row }) => ({
      ...row,
      trigger: JSON.parse(trigger as string),
      ...readState(stateText as string),
      attempts: readAttempts(attempts as string[]).map((text) => JSON.parse(text)),
    }),
  },
  auditLog: {
    table: AUDIT,
    time: 'at',
    tie: 'place',
    isWhole: '1',
    members: {
      _id: '_id',
      organizationId: 'organizationId',
      at: 'toUnixTimestamp64Milli(at)',
      actorType: 'actorType',
      actorId: 'actorId',
      action: 'action',
      noun: 'noun',
      resourceId: 'resourceId',
      hubIds: 'hubIds',
      stream: 'stream',
      revision: 'revision',
      place: 'place',
    },
    lists: ['hubIds'],
    revive: (row) => row,
  },
}

const DAY_MS = 86_400_000
/** Newest first is read step by step back in time: most lists want recent rows, and need not read a year for them. */
const STEPS_MS = [DAY_MS, 16 * DAY_MS]
const SETTINGS =
  'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1, use_skip_indexes_if_final = 1'

/**
 * Trips, runs of automations and the audit log as sources of lists. Like a table of rows that live by organization,
 * but: sorted by time alone (newest first unless `sort` says otherwise), without words, and read from the history,
 * which follows the log by some hundred milliseconds.
 */
export class HistoryRows implements Pick<TableStore, 'get' | 'getMany' | 'find'> {
  private readonly history: Pick<HistoryStore, 'rows'>
  private readonly clock: Pick<Clock, 'now'>
  private readonly caughtUp: ((table: string) => Promise<unknown>) | undefined

  /**
   * @param caughtUp resolves when the table has everything logged before the call, or after a while: `get` waits for it
   * before it answers that there is no row, as live view or webhook may have sent it first
   */
  constructor(
    history: Pick<HistoryStore, 'rows'>,
    clock: Pick<Clock, 'now'>,
    caughtUp?: (table: string) => Promise<unknown>,
  ) {
    this.history = history
    this.clock = clock
    this.caughtUp = caughtUp
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    const [row] = await this.getMany<R>(table, scope, [id])
    if (row !== undefined || this.caughtUp === undefined) return row
    await this.caughtUp(table)
    return (await this.getMany<R>(table, scope, [id]))[0]
  }

  async getMany<R extends Row>(table: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]> {
    if (ids.length === 0) return []
    const rows = await this.select<R>(table, ['organizationId = {scope:String}', '_id IN {ids:Array(String)}'], '', {
      scope,
      ids,
    })
    const byId = new Map(rows.map(({ id, row }) => [id, row]))
    return ids.map((id) => byId.get(id))
  }

  async find<R extends Row>(table: string, scope: string, question: Find): Promise<Found<R>> {
    const { time, tie = '_id' } = listed(table)
    const { conditions, parameters } = conditionsOf(listed(table), scope, question)
    const total = question.total === true ? this.count(table, conditions, parameters) : undefined
    total?.catch(() => undefined) // reported where it is awaited
    const order = question.sort?.order ?? 'desc'
    const after = question.after === undefined ? undefined : placeOf(question.after)
    if (after !== undefined) {
      const sign = order === 'desc' ? '<' : '>'
      conditions.push(`${time} ${sign}= ${timeOf('afterTime')}`)
      conditions.push(`(${time}, ${tie}) ${sign} (${timeOf('afterTime')}, {afterTie:String})`)
      Object.assign(parameters, { afterTime: after.time, afterTie: after.tie })
    }
    const wanted = question.limit + 1
    const tail = `ORDER BY ${time} ${order}, ${tie} ${order} LIMIT {limit:UInt64} OFFSET {offset:UInt64}`
    Object.assign(parameters, { limit: wanted, offset: question.offset ?? 0 })
    let rows: StoredRow<R>[] = []
    for (const since of order === 'desc' ? this.sinces(question, after?.time) : [undefined]) {
      const bounded = since === undefined ? conditions : [...conditions, `${time} >= ${timeOf('since')}`]
      rows = await this.select<R>(table, bounded, tail, { ...parameters, ...(since !== undefined && { since }) })
      if (rows.length === wanted) break
    }
    const page = rows.slice(0, question.limit)
    const last = page.at(-1)
    const next = rows.length < wanted || last === undefined ? null : JSON.stringify([last.row[time], last.row[tie]])
    return { rows: page, ...(total !== undefined && { total: await total }), next }
  }

  /** Start times of the searched ranges, in turn until there are enough rows; undefined for everything. */
  private sinces({ range }: Find, afterTime: number | undefined): (number | undefined)[] {
    const newest = Math.min(this.clock.now(), afterTime ?? Number(range?.to ?? Number.POSITIVE_INFINITY))
    const steps = STEPS_MS.map((step) => newest - step).filter((since) => since > Number(range?.from ?? 0))
    return [...steps, undefined]
  }

  private async count(table: string, conditions: readonly string[], parameters: HistoryParameters): Promise<number> {
    const { table: name, isWhole } = listed(table)
    const [{ total }] = await this.history.rows<{ total: number }>(
      `SELECT count() AS total FROM ${name} FINAL WHERE ${[...conditions, isWhole].join(' AND ')} ${SETTINGS}`,
      { ...parameters },
    )
    return total
  }

  private async select<R extends Row>(
    table: string,
    conditions: readonly string[],
    tail: string,
    parameters: HistoryParameters,
  ): Promise<StoredRow<R>[]> {
    const { members, revive, table: name, isWhole } = listed(table)
    const columns = Object.entries(members).map(([member, sql]) => `${sql} AS ${member}`)
    const rows = await this.history.rows<Row>(
      `SELECT ${columns.join(', ')} FROM ${name} FINAL WHERE ${[...conditions, isWhole].join(' AND ')} ${tail} ${SETTINGS}`,
      parameters,
    )
    return rows.map((row) => ({ scope: parameters.scope as string, id: row._id as string, row: revive(row) as R }))
  }
}

const listed = (table: string): Listed => {
  const found = LISTED[table]
  if (found === undefined) throw new Error(`The history lists no ${table}.`)
  return found
}

/** @throws Error for a question that the table does not answer. */
const conditionsOf = (
  { time, members, lists = [] }: Listed,
  scope: string,
  { where = {}, range, text, sort }: Find,
): { conditions: string[]; parameters: HistoryParameters } => {
  const conditions = ['organizationId = {scope:String}']
  const parameters: HistoryParameters = { scope }
  if (
    text !== undefined ||
    (sort !== undefined && sort.field !== time) ||
    (range !== undefined && range.field !== time)
  )
    throw new Error(`This list of the history is sorted and bounded by ${time} alone, and has no words.`)
  for (const [field, values] of Object.entries(where)) {
    if (members[field] === undefined) throw new Error(`This list of the history has no ${field}.`)
    const asked = `{where_${field}:Array(String)}`
    conditions.push(
      lists.includes(field) ? `hasAny(${members[field]}, ${asked})` : `toString(${members[field]}) IN ${asked}`,
    )
    parameters[`where_${field}`] = (Array.isArray(values) ? values : [values]).map(textOf)
  }
  for (const [side, sign] of [
    ['from', '>='],
    ['to', '<='],
  ] as const) {
    if (range?.[side] === undefined) continue
    conditions.push(`${time} ${sign} ${timeOf(side)}`)
    parameters[side] = range[side]
  }
  return { conditions, parameters }
}

/** As ClickHouse writes the value of a member as text. */
const textOf = (value: string | number | boolean): string =>
  typeof value === 'boolean' ? (value ? '1' : '0') : `${value}`

/** @throws Failure invalid for a cursor that this list did not give out. */
const placeOf = (cursor: string): { time: number; tie: string } => {
  const [, time, tie] = /^\[(\d{1,15}),"([^"\\]*)"\]$/.exec(cursor) ?? []
  if (tie === undefined) throw invalid('/cursor', 'is not a cursor of this list and these filters')
  return { time: Number(time), tie }
}
