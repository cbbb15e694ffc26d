import type { FileStore } from '../../engines/file-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { uploadKey } from '../../kit/files/attached-file.ts'
import { sendFile } from '../../kit/files/send-file.ts'
import type { Uploads } from '../../kit/files/uploads.ts'
import { idSchema } from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { rangedAnswers } from '../../kit/http/send-ranged.ts'
import { originOf } from '../../kit/resource/writes.ts'
import type { FileHolders, FoundAttachment } from './views.ts'

export interface FileServices {
  files: Pick<FileStore, 'get'>
  uploads: Uploads
  /** Each kind of record that files are attached to. */
  holders: readonly FileHolders[]
}

const PARAMS = { fileId: idSchema('The id of the file.') }
const TAG = 'Files'

/** Routes that read and delete attached files, under the same rights as the record that holds them. */
export const fileRoutes = (services: FileServices): Route[] => [readRoute(services), deleteRoute(services)]

const readRoute = (services: FileServices): Route =>
  route({
    method: 'GET',
    path: '/file/{fileId}',
    operationId: 'readFile',
    summary: 'Download a file that is attached to a task or a record',
    description:
      'As an attachment under its own name. `Range` asks for a part, `If-None-Match` with the `ETag` answers 304 when it is unchanged. Needs `view/task` for files of tasks, `view/data` for files of records; a field that your role hides is 403.',
    tag: TAG,
    access: 'user',
    params: PARAMS,
    answers: rangedAnswers('The file, of the type that its bytes have.', '*/*', ['Content-Disposition']),
    handler: async (request) => {
      const { file, holder } = await findFile(services, userOf(request), request.params.fileId, 'view')
      return sendFile(services.files, request, { ...file, key: uploadKey(holder, file.upload) })
    },
  })

const deleteRoute = (services: FileServices): Route =>
  route({
    method: 'DELETE',
    path: '/file/{fileId}',
    operationId: 'deleteFile',
    summary: 'Delete a file, and take it out of its task or record',
    description: 'Needs `edit/task` for files of tasks, `edit/data` for files of records.',
    tag: TAG,
    access: 'user',
    params: PARAMS,
    answers: { 200: { description: 'It is deleted.' } },
    handler: async (request) => {
      const found = await findFile(services, userOf(request), request.params.fileId, 'edit')
      const { wrote } = await found.holders.detach(originOf(request), found)
      await services.uploads.remove(found.holder, found.file.upload)
      return { wrote }
    },
  })

/** @throws Failure forbidden if the caller lacks the permission for every kind or for the kind found; not_found */
const findFile = async (
  { holders }: FileServices,
  caller: UserCaller,
  fileId: string,
  action: 'view' | 'edit',
): Promise<FoundAttachment & { holders: FileHolders }> => {
  const allowed = holders.filter(({ permissions }) => caller.permissions.has(permissions[action]))
  if (allowed.length === 0) {
    const needed = holders.map(({ permissions }) => permissions[action]).join(' or ')
    throw new Failure('forbidden', { message: `This needs the permission ${needed}.` })
  }
  for (const one of allowed) {
    const found = await one.find(caller, fileId.toLowerCase(), action === 'view')
    if (found !== undefined) return { ...found, holders: one }
  }
  throw new Failure('not_found')
}
