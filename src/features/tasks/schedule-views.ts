import type { Row, TableDeclaration } from '../../kernel/table.ts'

export const SCHEDULES = 'schedules'

/** When each schedule that is active makes its next task. */
export const DUE_SCHEDULES: TableDeclaration = { name: 'dueSchedules', version: 1, range: ['makeAt'] }

export interface DueScheduleRow extends Row {
  organizationId: string
  /** ms since the epoch. */
  makeAt: number
}
