import type { DateOrder } from '../../kit/formats/conventions.ts'
import type { TableAbout } from '../../kit/formats/table-cells.ts'
import type { JobAsked } from '../../kit/jobs/job.ts'

export type ImportType = 'datasource' | 'task' | 'visit' | 'route'
export const IMPORT_TYPES: readonly ImportType[] = ['datasource', 'task', 'visit', 'route']

export type ImportMode = 'insert' | 'upsert'

/** An import that was asked for. Its file is stored by then. */
export interface ImportRequested extends JobAsked {
  userId: string
  type: ImportType
  mode: ImportMode
  dryRun: boolean
  fileName: string
  /** Bytes. */
  size: number
  /** In the file store. */
  upload: string
  format: TableAbout['format']
  sheet?: string
  delimiter?: string
  dataTypeId?: string
  flowId?: string
  hubId?: string
  /** Fields by the names of columns. */
  mapping: { [column: string]: string }
  timeZone: string
  dateOrder?: DateOrder
  /** Where the file does not say it. */
  defaults: { decimal: ',' | '.'; dateOrder: DateOrder }
}

/** A row that was refused. */
export interface ImportError {
  /** As a spreadsheet numbers it. */
  row: number
  /** Name of the column; null where the row as a whole is refused. */
  column: string | null
  code: string
  message: string
}

/** How an import ended. */
export interface ImportResult {
  succeeded: number
  failed: number
  /** The first ones. */
  errors: ImportError[]
  /** Number of the last row that was looked at. */
  lastRow: number
  hasReport: boolean
  /** Of the report; absent where there is none. */
  reportBytes?: number
}

/** The place that a row gives a task in a routing result. */
export interface ImportPlace {
  row: number
  taskId: string
  /** The row made the task. */
  isNew: boolean
  routingResultId: string
  /** Name of the routing result. */
  route: string
  hubId: string
  vehicleId: string
  sequence?: number
}

/**
 * What the streams `importPages-<id>` hold: the rows of a page that were refused, the records that were there before, and
 * places in routes.
 */
export const IMPORT_PAGE = 'importPage.v1'

export interface ImportPage {
  organizationId: string
  errors: ImportError[]
  changed: { row: number; id: string }[]
  places?: ImportPlace[]
}

export const pagesStream = (importId: string): string => `importPages-${importId}`

/** An import is to be taken back. */
export interface ImportUndoRequested extends JobAsked {
  userId: string
  importId: string
  /** When the import was asked for, ms since the epoch. */
  importedAt: number
  type: ImportType
  lastRow: number
}

export interface ImportUndoResult {
  /** Rows whose record is gone again, or has the values back that it had. */
  undone: number
  kept: number
  /** The first ones that stayed, and why. */
  errors: ImportError[]
}
