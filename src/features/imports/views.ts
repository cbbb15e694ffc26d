import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { hidesFields } from '../../kernel/hidden-fields.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { idFrom, idInOrder } from '../../kit/commands/ids.ts'
import { defineJob, type JobBounds, type JobRow, type JobView } from '../../kit/jobs/job.ts'
import { seesJob } from '../../kit/jobs/who-sees.ts'
import type { ImportError, ImportRequested, ImportResult, ImportUndoRequested, ImportUndoResult } from './events.ts'

/** Progress of an import: the next attempt continues after the row. */
export interface ImportReached extends Omit<ImportResult, 'hasReport' | 'reportBytes'> {
  total: number
}

export interface ImportRow extends JobRow<ImportResult>, Omit<ImportRequested, 'at'> {
  /** ms since the epoch. */
  startedAt?: number
  undoneAt?: number
  undo?: ImportUndoResult
}

/** Faults of a file, or of its sender's rights, recur at each attempt. */
const isFinal = (error: unknown): boolean => error instanceof Failure && error.status < 500

/** An import; streams `import-<id>`. */
export const IMPORT = defineJob<ImportRequested, ImportRow>({
  kind: 'import',
  row: ({ at: _at, ...asked }) => asked,
  isFinal,
})

export interface ImportUndoRow extends JobRow<ImportUndoResult> {
  userId: string
  importId: string
}

/** Undo of an import; streams `importUndo-<id of the import>`. */
export const IMPORT_UNDO = defineJob<ImportUndoRequested, ImportUndoRow>({
  kind: 'importUndo',
  row: ({ userId, importId }) => ({ userId, importId }),
  isFinal,
})

export const IMPORTS: TableDeclaration = {
  name: 'imports',
  version: 1,
  equality: ['_id', 'status', 'state', 'type', 'mode', 'userId', 'upload'],
  range: ['createdAt', 'updatedAt'],
}

export const IMPORT_UNDOS: TableDeclaration = {
  name: 'importUndos',
  version: 1,
  equality: ['status', 'userId'],
  range: ['createdAt'],
}

/** Waiting and running imports of an organization. */
export const IMPORT_BOUNDS: JobBounds = { table: IMPORTS, plural: 'imports', organizationMax: 50 }
export const UNDO_BOUNDS: JobBounds = { table: IMPORT_UNDOS, plural: 'undos of imports', organizationMax: 50 }

/** Key prefix of all files of imports. */
export const IMPORT_FILES = 'imports/'

export const reportKey = (organizationId: string, importId: string): string =>
  `${IMPORT_FILES}${organizationId}/${importId}-report`

/** Id of a record that a row creates: lists in order of creation follow the order of the file. */
export const madeId = (importId: string, askedAt: number, row: number): string => idInOrder(askedAt, row, importId)

/** Id of the routing result that an import creates for a name and a hub. */
export const madeRouteId = (importId: string, hubId: string, route: string): string =>
  idFrom('import-route', importId, hubId, route)

export type ImportState = ImportRow['status'] | 'completedWithErrors'

/** Reported state: refused rows do not make the whole import fail. */
export const stateOf = ({ status, result }: Pick<ImportRow, 'status' | 'result'>): ImportState =>
  status === 'completed' && (result?.failed ?? 0) > 0 ? 'completedWithErrors' : status

type Viewer = Pick<UserCaller, 'userId' | 'permissionDetails'>

/** Whether the import quotes what the viewer sent, or values that their role hides nothing of. */
export const seesQuotes = (viewer: Viewer, { userId, dataTypeId }: Pick<ImportRow, 'userId' | 'dataTypeId'>): boolean =>
  viewer.userId === userId || !hidesFields(viewer, dataTypeId)

const withoutQuote = (error: ImportError): ImportError => ({
  ...error,
  message: 'Your role hides fields of these records.',
})

/** An import as its GET and live messages show it. */
export const importShown = (row: ImportRow, viewer: Viewer): { [member: string]: unknown } => {
  const { _id, organizationId, type, mode, fileName, size, dryRun, userId, error, undo } = row
  const reached = row.reached?.cursor as ImportReached | undefined
  const { succeeded = 0, failed = 0, errors = [] } = row.result ?? reached ?? {}
  const hasEnded = row.status !== 'queued' && row.status !== 'processing'
  return {
    _id,
    organizationId,
    type,
    mode,
    fileName,
    size,
    status: stateOf(row),
    total: row.total ?? reached?.total ?? 0,
    processed: row.processed,
    succeeded,
    failed,
    errors: seesQuotes(viewer, row) ? errors : errors.map(withoutQuote),
    dryRun,
    ...(row.dataTypeId !== undefined && { dataTypeId: row.dataTypeId }),
    ...(row.flowId !== undefined && { flowId: row.flowId }),
    ...(row.hubId !== undefined && { hubId: row.hubId }),
    mapping: row.mapping,
    userId,
    hasReport: row.result?.hasReport ?? false,
    ...(error !== undefined && { error }),
    ...(row.status !== 'queued' && { startedAt: formatTime(row.startedAt ?? row.createdAt) }),
    ...(hasEnded && { finishedAt: formatTime(row.updatedAt) }),
    ...(row.undoneAt !== undefined && { undoneAt: formatTime(row.undoneAt) }),
    ...(undo !== undefined && { undo }),
    createdAt: formatTime(row.createdAt),
    updatedAt: formatTime(row.updatedAt),
    version: row.version,
  }
}

export const IMPORT_VIEW: JobView<ImportRow> = {
  kind: IMPORT,
  shown: importShown,
  sees: (caller, row) => caller.permissions.has('import/data') && seesJob(caller, row),
}
