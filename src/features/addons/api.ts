import { Failure, invalid, taken } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import { BINARY, formSchema } from '../../kit/http/multipart.ts'
import { UUID } from '../../kit/http/page-members.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { assertRoom } from '../../kit/quotas/quotas.ts'
import { rowAnswer, rowReply } from '../../kit/resource/answers.ts'
import { createdId } from '../../kit/resource/created-id.ts'
import { valuesSchema } from '../../kit/resource/schemas.ts'
import { assertNewNames } from '../../kit/resource/new-names.ts'
import { shownBy } from '../../kit/resource/show.ts'
import { type Making, originOf, versionOf, type Written } from '../../kit/resource/writes.ts'
import { addon, type AddonFile, type AddonServices } from './addon.ts'
import { filesRoute } from './files-route.ts'
import { addonPath, FRAME } from './paths.ts'
import { type AddonUpload, readUpload, storeIcon, storeScripts, UPLOAD_BYTES_MAX } from './upload.ts'

type Upload = RouteRequest<{ [name: string]: unknown }, Buffer>

const { declaration } = addon
const PARAMS = { addonId: { type: 'string', format: 'uuid', description: 'The id of the add-on.' } } as const
const checkValues = compileCheck(valuesSchema(declaration))
const checkId = compileCheck({ type: 'object', properties: { _id: UUID } })

export const addonRoutes = (services: AddonServices): Route[] => [
  ...addon.routes(services, { present: (rows) => rows.map((row) => withUrls(services, row)) }),
  uploadRoute('POST', 'createAddon', 'Upload an add-on', (request) => create(services, request)),
  uploadRoute('PUT', 'replaceAddon', 'Replace an add-on; versions before stay readable', (request) =>
    change(services, request, 'replace'),
  ),
  uploadRoute('PATCH', 'amendAddon', 'Amend an add-on: what is not sent stays', (request) =>
    change(services, request, 'amend'),
  ),
  filesRoute(services),
]

const uploadRoute = (
  method: 'POST' | 'PUT' | 'PATCH',
  operationId: string,
  summary: string,
  handler: (request: Upload) => Promise<Reply>,
): Route =>
  route<{ [name: string]: unknown }, Buffer>({
    method,
    path: method === 'POST' ? '/addon' : '/addon/{addonId}',
    operationId,
    summary,
    description:
      'A form of `name`, up to 20 `files` (scripts in UTF-8, `.js` or `.mjs`, of up to 2 MiB each, 12 MiB together) and an `icon` (PNG, JPEG, WebP, GIF, or SVG, of which only what draws is kept; up to 256 KiB).',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    ...(method !== 'POST' && { params: PARAMS }),
    rawBody: { contentTypes: ['multipart/form-data'] },
    bodyShown: formSchema(
      {
        ...(method === 'POST' && { _id: { type: 'string', format: 'uuid' } }),
        name: { type: 'string', maxLength: 100 },
        files: { type: 'array', items: BINARY, maxItems: 20 },
        icon: BINARY,
      },
      method === 'PATCH' ? [] : ['name', 'files'],
    ),
    bodyExample: { name: 'Route colors' },
    bodyBytesMax: UPLOAD_BYTES_MAX,
    answers: { [method === 'POST' ? 201 : 200]: rowAnswer(declaration) },
    handler,
  })

const create = async (services: AddonServices, request: Upload): Promise<Reply> => {
  const upload = await uploadOf(request)
  const origin = originOf(request)
  const writer = addon.writer(services)
  const { id, isDrawn } = createdId(declaration, origin, sentIdOf(upload))
  if (!isDrawn) await assertNotOthers(services, origin.organizationId, id)
  const body = valuesOf(upload)
  await assertNewNames(declaration.fields, body, async () => undefined)
  const making = async (): Promise<Making> => ({
    body,
    extra: (await stored(services, origin.organizationId, id, upload)) as JsonObject,
  })
  const written = await writer.make(origin, id, making, isDrawn)
  return reply(services, request, written, 201)
}

/** Files are stored before the write is decided: none may come to stand below an add-on of others. @throws Failure conflict */
const assertNotOthers = async ({ log }: AddonServices, organizationId: string, id: string): Promise<void> => {
  const [first] = await log.read(`addon-${id}`, 0, 1)
  if (first !== undefined && decodeJson<ResourceData>(first.data).organizationId !== organizationId)
    throw taken('/_id', 'conflict')
}

const change = async (services: AddonServices, request: Upload, kind: 'replace' | 'amend'): Promise<Reply> => {
  const upload = await uploadOf(request)
  const id = request.params.addonId.toLowerCase()
  const row = await services.tables.get(declaration.plural, userOf(request).organizationId, id)
  if (row === undefined) throw new Failure('not_found')
  const sent = kind === 'replace' ? valuesOf(upload) : { ...(upload.name !== undefined && valuesOf(upload)) }
  if (kind === 'replace' && upload.files === undefined) throw invalid('/files', 'is required')
  await assertNewNames(declaration.fields, sent, async () => row)
  const files = await stored(services, userOf(request).organizationId, id, upload)
  const next = { ...sent, ...files } as JsonObject
  const update = (before: JsonObject): JsonObject => (kind === 'replace' ? next : { ...before, ...next })
  const written = await addon.writer(services).update(originOf(request), id, update, versionOf(request, undefined))
  return reply(services, request, written)
}

const uploadOf = ({ headers, body }: Upload): Promise<AddonUpload> => readUpload(headers.get('content-type'), body)

/** @throws Failure invalid */
const sentIdOf = ({ _id }: AddonUpload): JsonObject => {
  const sent: JsonObject = { ...(_id !== undefined && { _id }) }
  assertValid(checkId, sent)
  return sent
}

/** Text fields of the form. @throws Failure invalid */
const valuesOf = ({ name }: AddonUpload): JsonObject => {
  const values: JsonObject = { ...(name !== undefined && { name }) }
  assertValid(checkValues, values)
  return values
}

/** Stores the files of the form before any event names them. @throws Failure quota */
const stored = async (
  { files, quotas }: AddonServices,
  organizationId: string,
  addonId: string,
  upload: AddonUpload,
): Promise<{ files?: AddonFile[]; icon?: AddonFile }> => {
  const sizes = [...(upload.files ?? []), ...(upload.icon === undefined ? [] : [upload.icon])]
  const bytes = sizes.reduce((sum, one) => sum + one.bytes.byteLength, 0)
  // Files of an add-on stay for as long as it does, referenced or not.
  await assertRoom(quotas, organizationId, 'filesBytes', bytes)
  return {
    ...(upload.files !== undefined && { files: await storeScripts(files, addonId, upload.files) }),
    ...(upload.icon !== undefined && { icon: await storeIcon(files, addonId, upload.icon) }),
  }
}

const reply = async (services: AddonServices, request: Upload, { row, wrote }: Written, status = 200) => {
  const shown = await shownBy(declaration, services, request, withUrls(services, row))
  return rowReply(shown, row, wrote, status)
}

const withUrls = ({ origin = '' }: AddonServices, row: Row): Row => {
  const withUrl = (file: AddonFile) => ({ ...file, url: origin + file.path })
  const { files = [], icon } = row as { files?: AddonFile[]; icon?: AddonFile }
  return {
    ...row,
    files: files.map(withUrl),
    ...(icon !== undefined && { icon: withUrl(icon) }),
    frameUrl: origin + addonPath(String(row._id), FRAME),
  }
}
