import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { defineJob, type JobBounds, type JobRow, type JobView } from '../../kit/jobs/job.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { downloadPath, expiresAt } from './download-link.ts'
import type { ExportRequested, ExportResult } from './events.ts'

export interface ExportRow extends JobRow<ExportResult>, Omit<ExportRequested, 'at' | 'total' | 'emails'> {}

const isFinal = (error: unknown): boolean => error instanceof Failure && error.status < 500

/** An export; streams `export-<id>`. */
export const EXPORT = defineJob<ExportRequested, ExportRow>({
  kind: 'export',
  row: ({ at: _at, emails: _emails, ...asked }) => asked,
  isFinal,
})

export const EXPORTS: TableDeclaration = {
  name: 'exports',
  version: 1,
  equality: ['_id', 'status', 'kind', 'format', 'userId', 'dataTypeId'],
  range: ['createdAt', 'updatedAt'],
}

export const EXPORT_BOUNDS: JobBounds = { table: EXPORTS, plural: 'exports', organizationMax: 20 }

export const EXPORT_FILES = 'exports/'

/** File of an attempt: one that a process which stood still writes late never replaces that of a later attempt. */
export const exportKey = (organizationId: string, exportId: string, attempt: number): string =>
  `${EXPORT_FILES}${organizationId}/${exportId}${attempt === 1 ? '' : `.${attempt}`}`

/** An export as its GET and live messages show it; only its requester gets the path to the file. */
export const exportShown = (
  row: ExportRow,
  download?: { keyring: Keyring; userId: string },
): { [member: string]: unknown } => {
  const { _id, organizationId, kind, format, result, total = 0, userId, error, isDirect } = row
  const isThere = row.status === 'completed' && !isDirect
  return {
    _id,
    organizationId,
    kind,
    format,
    status: isDirect ? 'completed' : row.status,
    rows: result?.rows ?? total,
    ...(result?.size !== undefined && { size: result.size }),
    ...(row.dataTypeId !== undefined && { dataTypeId: row.dataTypeId }),
    ...(row.exportConfigId !== undefined && { exportConfigId: row.exportConfigId }),
    ...(error !== undefined && { error }),
    createdBy: userId,
    createdAt: formatTime(row.createdAt),
    updatedAt: formatTime(row.updatedAt),
    version: row.version,
    ...(isThere && { expiresAt: formatTime(expiresAt(row)) }),
    ...(isThere && download?.userId === userId && { downloadPath: downloadPath(download.keyring, row) }),
  }
}

export const EXPORT_VIEW: JobView<ExportRow> = {
  kind: EXPORT,
  shown: (row) => exportShown(row),
  sees: (caller: Pick<UserCaller, 'userId'>, { userId }) => caller.userId === userId,
}
