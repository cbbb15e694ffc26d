import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { dueRows } from '../../kit/resource/due-rows.ts'
import { assertOneForm, nextAfter, type Recurrence, recurrenceFault } from '../../kit/recurrence/recurrence.ts'

/** Least time between two exports of one config. */
const GAP_MINUTES_MIN = 5

/** Next due time of each config with a schedule. */
export const DUE_EXPORTS: TableDeclaration = { name: 'dueExports', version: 1, range: ['nextAt'] }

export interface DueExportRow extends Row {
  organizationId: string
  /** ms since the epoch. */
  nextAt: number
}

export const waitingExports = dueRows(
  'exportConfig',
  DUE_EXPORTS,
  ({ schedule, nextAt }): Omit<DueExportRow, 'organizationId'> | undefined =>
    schedule !== undefined && nextAt !== undefined ? { nextAt: Date.parse(String(nextAt)) } : undefined,
)

/** A schedule begins when it is written, and runs with the rights of the last writer of the config. */
export const keptSchedule = ({ values, before, caller, now }: WriteContext): JsonObject => {
  const { nextAt: wasNext, scheduledBy: wasBy, scheduledAt: wasAt, notice, ...others } = values
  const schedule = values.schedule as JsonObject | undefined
  if (schedule === undefined) return others
  const isChanged = !isDeepStrictEqual(schedule, before?.schedule)
  const scheduledAt = isChanged || wasAt === undefined ? formatTime(now) : wasAt
  const recurring = { ...others, scheduledAt }
  if (isChanged) assertSchedule(schedule, recurring)
  const nextAt = isChanged ? nextExport(recurring, now) : wasNext
  const scheduledBy = caller?.userId ?? wasBy
  return {
    ...recurring,
    ...(nextAt !== undefined && { nextAt }),
    ...(scheduledBy !== undefined && { scheduledBy }),
    ...(notice !== undefined && caller === undefined && { notice }),
  }
}

/** Next due time after a moment; undefined if there is none. */
export const nextExport = (values: JsonObject, afterMs: number): string | undefined =>
  nextAfter(recurrenceOf(values), afterMs)

const recurrenceOf = ({ schedule, scheduledAt }: JsonObject): Recurrence =>
  ({ ...(schedule as JsonObject), startTime: scheduledAt }) as unknown as Recurrence

const assertSchedule = (schedule: JsonObject, values: JsonObject): void => {
  assertOneForm(schedule, '/schedule')
  const fault = recurrenceFault(recurrenceOf(values), GAP_MINUTES_MIN)
  if (fault !== undefined) throw invalid(`/schedule/${schedule.rrule === undefined ? 'repeat' : 'rrule'}`, fault)
}
