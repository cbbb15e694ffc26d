import type { JsonObject } from '../../kernel/json.ts'
import type { JobAsked } from '../../kit/jobs/job.ts'

export const EXPORT_FORMATS = ['csv', 'xlsx', 'json', 'geojson', 'gpx'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]
export type ExportKind = 'data' | 'task'

export interface ExportQuestion {
  kind: ExportKind
  format: ExportFormat
  dataTypeId?: string
  exportConfigId?: string
  /** Default: all that the caller sees. */
  fields?: string[]
  /** Titles of columns by field name. */
  mapping: { [field: string]: string }
  /** Filters of the list, as in a query. */
  filter: JsonObject
}

export interface ExportRequested extends JobAsked, ExportQuestion {
  userId: string
  timeZone: string
  /** Rows found at the time of the request. */
  total: number
  /** The request returned the file itself: no work is left. */
  isDirect: boolean
  /** Addresses that get a link to the finished file. */
  emails?: string[]
}

export interface ExportResult {
  rows: number
  /** Bytes; absent if the file was answered directly. */
  size?: number
}
