import type { JsonObject } from '../../kernel/json.ts'
import type { JobAsked } from '../../kit/jobs/job.ts'

export const EXPORT_FORMATS = ['csv', 'xlsx', 'json', 'geojson', 'gpx'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]
export type ExportKind = 'data' | 'task'

/** What is exported, and how. */
export interface ExportQuestion {
  kind: ExportKind
  format: ExportFormat
  dataTypeId?: string
  exportConfigId?: string
  /** Left out: all that the caller sees. */
  fields?: string[]
  /** Titles of columns by the names of fields. */
  mapping: { [field: string]: string }
  /** Filters of the list, as a query has them. */
  filter: JsonObject
}

export interface ExportRequested extends JobAsked, ExportQuestion {
  userId: string
  timeZone: string
  /** Rows that were found when it was asked for. */
  total: number
  /** The request answered the file itself: there is nothing left to do. */
  isDirect: boolean
  /** Addresses that a link to the file is mailed to once it is there. */
  emails?: string[]
}

export interface ExportResult {
  rows: number
  /** Bytes; absent of a file that was answered directly. */
  size?: number
}
