import type { JsonSchema } from '../../kernel/json.ts'
import { idSchema } from '../http/list-query.ts'
import { BINARY, formSchema } from '../http/multipart.ts'
import { answered, dataAnswer, DATE_TIME, UUID } from '../http/page-members.ts'
import { formatTime, userOf } from '../http/request-context.ts'
import { route, type Route, type RouteRequest } from '../http/route.ts'
import { idParameter, pathsOf } from './answers.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import { findRow } from './show.ts'
import { originOf, type WriteOrigin, type Written } from './writes.ts'
import type { AttachedFile, FileHolder } from '../files/attached-file.ts'
import type { Upload, Uploads } from '../files/uploads.ts'

/** Differences between the records that files are attached to. */
export interface Attaching {
  /** Word for a record in sentences: `task`. */
  thing: string
  operationId: string
  description: string
  title: string
  /** The field of the form, and the member of the answer, that tells the file's place, with an example. */
  place: [member: string, example: string]
  /** Fields that the form may have beside it. */
  further?: { [name: string]: JsonSchema }
  /** Replaces the lookup among the records that the caller sees. @throws Failure not_found */
  find?(request: Pick<RouteRequest, 'caller' | 'now' | 'ids' | 'correlationId'>, id: string): Promise<void>
  /** @param fields those of the form */
  attach(origin: WriteOrigin, id: string, fields: { [name: string]: string }, file: AttachedFile): Promise<Written>
}

/** `POST /<noun>/{id}/files`. */
export const uploadRoute = (
  declaration: ResourceDeclaration,
  services: Pick<ResourceServices, 'tables'>,
  uploads: Uploads,
  attaching: Attaching,
): Route => {
  const { thing, operationId, description, title, further = {}, attach } = attaching
  const [place, placeExample] = attaching.place
  const find = attaching.find ?? ((request, id) => findRow(declaration, services, request, id))
  const shape = { required: [place], optional: Object.keys(further) }
  const owner = idParameter(declaration)
  const holderOf = (organizationId: string, id: string): FileHolder => ({ noun: declaration.noun, organizationId, id })
  return route<object, Upload>({
    method: 'POST',
    path: `${pathsOf(declaration).one}/{${owner}}/files`,
    operationId,
    summary: `Attach a file to a ${thing}`,
    description,
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    params: { [owner]: idSchema(`The id of the ${thing}.`) },
    rawBody: { contentTypes: ['multipart/form-data'] },
    bodyShown: formSchema({ [place]: { type: 'string', maxLength: 50 }, ...further, file: BINARY }, [place, 'file']),
    bodyExample: { [place]: placeExample },
    bodyBytesMax: uploads.bodyBytesMax,
    answers: {
      201: dataAnswer('The file.', fileSchema(title, owner, place), {
        ...FILE_EXAMPLE,
        [owner]: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
        [place]: placeExample,
      }),
    },
    receive: async (request) => {
      const id = request.params[owner].toLowerCase()
      await find(request, id)
      return uploads.receive(request, holderOf(userOf(request).organizationId, id), shape)
    },
    handler: async (request) => {
      const { fields, ...stored } = request.body
      const id = request.params[owner].toLowerCase()
      const file: AttachedFile = { _id: request.ids.next(), ...stored, createdAt: formatTime(request.now) }
      const { row, wrote } = await attach(originOf(request), id, fields, file)
      const kept = await uploads.keptBy(holderOf(userOf(request).organizationId, id), row, file)
      return { status: 201, body: { data: shownFile(kept, { [owner]: id, [place]: fields[place] }) }, wrote }
    },
  })
}

export const shownFile = (
  { _id, name, contentType, size, createdAt }: AttachedFile,
  place: { [member: string]: string },
): { [member: string]: unknown } => ({ _id, name, contentType, size, ...place, createdAt })

const fileSchema = (title: string, owner: string, place: string): JsonSchema =>
  answered(title, {
    _id: UUID,
    name: { type: 'string', description: 'As its sender called it.' },
    contentType: { type: 'string', description: 'The media type that its bytes have.' },
    size: { type: 'integer', minimum: 1, description: 'Bytes.' },
    [owner]: UUID,
    [place]: { type: 'string' },
    createdAt: DATE_TIME,
  })

const FILE_EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
  name: 'receipt.jpg',
  contentType: 'image/jpeg',
  size: 48213,
  createdAt: '2026-01-01T08:00:00.000Z',
}
