import type { DateOrder } from '../../kit/formats/conventions.ts'
import type { TableAbout } from '../../kit/formats/table-cells.ts'
import type { JobAsked } from '../../kit/jobs/job.ts'

export type ImportType = 'datasource' | 'task' | 'visit' | 'route'
export const IMPORT_TYPES: readonly ImportType[] = ['datasource', 'task', 'visit', 'route']

export type ImportMode = 'insert' | 'upsert'

/** An import was requested. Its file is already stored. */
export interface ImportRequested extends JobAsked {
  userId: string
  type: ImportType
  mode: ImportMode
  dryRun: boolean
  fileName: string
  /** Bytes. */
  size: number
  /** Key in the file store. */
  upload: string
  format: TableAbout['format']
  sheet?: string
  delimiter?: string
  dataTypeId?: string
  flowId?: string
  hubId?: string
  /** Fields by column name. */
  mapping: { [column: string]: string }
  timeZone: string
  dateOrder?: DateOrder
  /** For values that the file leaves ambiguous. */
  defaults: { decimal: ',' | '.'; dateOrder: DateOrder }
}

/** A refused row. */
export interface ImportError {
  /** Number of the row in a spreadsheet. */
  row: number
  /** Name of the column; null if the row as a whole is refused. */
  column: string | null
  code: string
  message: string
}

/** Outcome of an import. */
export interface ImportResult {
  succeeded: number
  failed: number
  /** First errors. */
  errors: ImportError[]
  /** Number of the last row processed. */
  lastRow: number
  hasReport: boolean
  /** Size of the report; absent if there is none. */
  reportBytes?: number
}

/** Place of a row's task in a routing result. */
export interface ImportPlace {
  row: number
  taskId: string
  /** The row created the task. */
  isNew: boolean
  routingResultId: string
  /** Name of the routing result. */
  route: string
  hubId: string
  vehicleId: string
  sequence?: number
}

/** Page in the streams `importPages-<id>`: refused rows, records that existed before, and places in routes. */
export const IMPORT_PAGE = 'importPage.v1'

export interface ImportPage {
  organizationId: string
  errors: ImportError[]
  changed: { row: number; id: string }[]
  places?: ImportPlace[]
}

export const pagesStream = (importId: string): string => `importPages-${importId}`

/** Request to undo an import. */
export interface ImportUndoRequested extends JobAsked {
  userId: string
  importId: string
  /** Time of the import's request, ms since the epoch. */
  importedAt: number
  type: ImportType
  lastRow: number
}

export interface ImportUndoResult {
  /** Rows whose record is deleted again, or has its previous values back. */
  undone: number
  kept: number
  /** First rows that stayed, and why. */
  errors: ImportError[]
}
