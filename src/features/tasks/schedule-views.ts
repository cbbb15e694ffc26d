import type { Row, TableDeclaration } from '../../kernel/table.ts'

export const SCHEDULES = 'schedules'

/** Time of the next task of each active schedule. */
export const DUE_SCHEDULES: TableDeclaration = { name: 'dueSchedules', version: 1, range: ['makeAt'] }

export interface DueScheduleRow extends Row {
  organizationId: string
  /** ms since the epoch. */
  makeAt: number
}
