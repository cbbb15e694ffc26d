import type { FileStore } from '../../engines/file-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { sendFile } from '../../kit/files/send-file.ts'
import { type Route, route } from '../../kit/http/route.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { isSigned } from './download-link.ts'
import { mayExport } from './question.ts'
import { DECLARED, EXPORT_ID, OTHER_TYPES } from './schemas.ts'
import { exportKey, type ExportRow, EXPORTS } from './views.ts'
import { MEDIA_TYPES } from './write-rows.ts'

export interface FileRouteServices {
  tables: Pick<TableStore, 'get'>
  files: FileStore
  keyring: Keyring
  /** A user with their present rights; undefined if they are gone or may no longer sign in. */
  callerNow(
    tables: Pick<TableStore, 'get'>,
    organizationId: string,
    userId: string,
    now: number,
  ): Promise<UserCaller | undefined>
}

interface Signed {
  organization?: string
  expires?: number
  signature?: string
}

export const fileRoute = ({ tables, files, keyring, callerNow }: FileRouteServices): Route =>
  route<Signed>({
    ...DECLARED,
    method: 'GET',
    path: '/export-file/{exportId}',
    operationId: 'downloadExport',
    summary: 'Download the file of an export',
    description:
      'By the `downloadPath` of its record, which stands in for a token until it expires, and while whoever asked for the export may make it.',
    access: 'public',
    params: { exportId: EXPORT_ID },
    query: {
      type: 'object',
      properties: {
        organization: { type: 'string', format: 'uuid', description: 'As the path has it.' },
        expires: { type: 'integer', minimum: 0, description: 'Until when, ms since the epoch.' },
        signature: { type: 'string', maxLength: 100, description: 'Says that the service made the path.' },
      },
      additionalProperties: false,
    },
    answers: {
      200: {
        description: 'The file.',
        contentType: MEDIA_TYPES.csv,
        alsoAs: OTHER_TYPES,
        headers: ['Content-Disposition', 'Accept-Ranges', 'ETag'],
      },
      206: { description: 'The part that `Range` asks for.', contentType: MEDIA_TYPES.csv, headers: ['Content-Range'] },
    },
    handler: async (request) => {
      const { exportId } = request.params
      const { organization: organizationId, expires = 0, signature = '' } = request.query
      const isOurs = isSigned(keyring, exportId, { expires, signature }, request.now)
      if (organizationId === undefined || !isOurs) throw new Failure('not_found')
      const row = await tables.get<ExportRow>(EXPORTS.name, organizationId, exportId)
      if (row === undefined || row.status !== 'completed') throw new Failure('not_found')
      // The link gives no more than its requester could still ask for.
      const requester = await callerNow(tables, organizationId, row.userId, request.now)
      if (requester === undefined || !mayExport(requester, row.kind)) throw new Failure('not_found')
      const name = `${row.kind === 'data' ? 'data' : 'tasks'}.${row.format}`
      const [key, contentType] = [exportKey(organizationId, exportId, row.attempt), MEDIA_TYPES[row.format]]
      return sendFile(files, request, { _id: exportId, key, name, contentType })
    },
  })
