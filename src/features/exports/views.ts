import { timingSafeEqual } from 'node:crypto'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { defineJob, type JobBounds, type JobRow, type JobView } from '../../kit/jobs/job.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
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

/** Beginning of the keys of all files that exports have. */
export const EXPORT_FILES = 'exports/'

export const exportKey = (organizationId: string, exportId: string): string =>
  `${EXPORT_FILES}${organizationId}/${exportId}`

/** How long a file can be downloaded once it is made. */
const DOWNLOAD_MS = 7 * 86_400_000

export const expiresAt = ({ updatedAt }: Pick<ExportRow, 'updatedAt'>): number => updatedAt + DOWNLOAD_MS

const signature = (keyring: Keyring, exportId: string, expires: number): string =>
  keyring.hmac('export-download', `${exportId}|${expires}`).toString('base64url')

/** The path that stands for the right to download: whoever has it needs no token. */
export const downloadPath = (keyring: Keyring, row: ExportRow): string => {
  const expires = expiresAt(row)
  return `/api/v3/export-file/${row._id}?organization=${row.organizationId}&expires=${expires}&signature=${signature(keyring, row._id, expires)}`
}

/** Whether a path was signed here and has not run out. */
export const isSigned = (
  keyring: Keyring,
  exportId: string,
  { expires, signature: said }: { expires: number; signature: string },
  now: number,
): boolean => {
  const [own, other] = [Buffer.from(signature(keyring, exportId, expires)), Buffer.from(said)]
  return expires > now && own.length === other.length && timingSafeEqual(own, other)
}

/** An export as its GET and the live channel show it; the path to the file is for whoever asked for it. */
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
