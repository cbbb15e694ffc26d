import { createHash } from 'node:crypto'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { IMAGE_TYPES, imageEnding } from '../../../kit/http/image.ts'
import { BINARY, formSchema, parseMultipart } from '../../../kit/http/multipart.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { route, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { assertRoom } from '../../../kit/quotas/quotas.ts'
import { rowAnswer, rowReply } from '../../../kit/resource/answers.ts'
import { originOf, versionOf } from '../../../kit/resource/writes.ts'
import type { IdentityContext } from '../context.ts'
import { logoKey, logoPath } from './logo-path.ts'
import { organization, shownOrganization } from './organization.ts'

const LOGO_BYTES_MAX = 2 * 1024 * 1024
/** Most bytes of the form besides the file. */
const FORM_BYTES_MAX = 64 * 1024
const MULTIPART = 'multipart/form-data'
const { declaration } = organization

export const logoRoutes = (context: IdentityContext): Route[] => [
  putRoute(context),
  route({
    method: 'DELETE',
    path: '/organization/logo',
    operationId: 'deleteOrganizationLogo',
    summary: 'Remove the logo',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    answers: { 200: rowAnswer(declaration) },
    handler: (request) => write(context, request, undefined),
  }),
  readRoute(context),
]

const putRoute = (context: IdentityContext): Route =>
  route<{ [name: string]: unknown }, Buffer>({
    method: 'PUT',
    path: '/organization/logo',
    operationId: 'replaceOrganizationLogo',
    summary: 'Upload the logo',
    description:
      'PNG, JPEG, WebP or GIF of up to 2 MiB, as the body itself or as the `file` of a form. What it is, its bytes say. `logo` of the organization is then the path of the picture, which anyone may read.',
    tag: declaration.tag,
    access: { permission: declaration.permissions.edit },
    rawBody: { contentTypes: [MULTIPART, ...Object.values(IMAGE_TYPES), 'application/octet-stream'] },
    bodyShown: formSchema({ file: BINARY }, ['file']),
    bodyBytesMax: LOGO_BYTES_MAX + FORM_BYTES_MAX,
    answers: { 200: rowAnswer(declaration) },
    handler: async (request) => {
      const bytes = await pictureOf(request)
      const ending = await imageEnding(bytes)
      const name = `${createHash('sha256').update(bytes).digest('hex')}.${ending}`
      const { organizationId } = userOf(request)
      const { files, quotas } = context.services
      await assertRoom(quotas, organizationId, 'filesBytes', bytes.byteLength)
      await files.put(logoKey(organizationId, name), one(bytes), LOGO_BYTES_MAX)
      return write(context, request, { logo: logoPath(organizationId, name), logoBytes: bytes.byteLength })
    },
  })

const pictureOf = async ({
  headers,
  body,
}: Pick<RouteRequest<object, Buffer>, 'headers' | 'body'>): Promise<Buffer> => {
  const contentType = headers.get('content-type') ?? ''
  if (!contentType.toLowerCase().startsWith(MULTIPART)) {
    if (body.byteLength > LOGO_BYTES_MAX)
      throw new Failure('too_large', { message: `The logo is larger than ${LOGO_BYTES_MAX} bytes.` })
    return body
  }
  const limits = { fields: [], files: { file: 1 }, fileBytesMax: LOGO_BYTES_MAX }
  const { files } = await parseMultipart(contentType, body, limits)
  if (files.length === 0) throw invalid('/file', 'is required')
  return files[0].bytes
}

const write = async (
  context: IdentityContext,
  request: Omit<RouteRequest, 'body' | 'query'>,
  logo: { logo: string; logoBytes: number } | undefined,
) => {
  const { organizationId } = userOf(request)
  const { row, wrote } = await context.organizations.update(
    originOf(request),
    organizationId,
    ({ logo: _logo, logoBytes: _bytes, ...before }) => ({ ...before, ...logo }),
    versionOf(request, undefined),
  )
  return rowReply(shownOrganization(row), row, wrote)
}

const readRoute = ({ services }: IdentityContext): Route =>
  route({
    method: 'GET',
    path: '/organization/{organizationId}/logo/{logoName}',
    operationId: 'readOrganizationLogo',
    summary: 'The logo of an organization, for everyone who has its path',
    tag: declaration.tag,
    access: 'public',
    params: {
      organizationId: { type: 'string', format: 'uuid', description: 'Of the organization.' },
      logoName: { type: 'string', pattern: '^[0-9a-f]{64}\\.(png|jpg|webp|gif)$', description: 'As `logo` ends.' },
    },
    answers: {
      200: { description: 'The picture; it never changes.', contentType: 'image/png', alsoAs: OTHER_TYPES },
    },
    handler: async ({ params }) => {
      const { organizationId, logoName } = params
      const found = await services.files.get(logoKey(organizationId.toLowerCase(), logoName))
      if (found === undefined) throw new Failure('not_found')
      return {
        stream: found.stream,
        headers: {
          'content-type': IMAGE_TYPES[logoName.slice(logoName.lastIndexOf('.') + 1)],
          'cache-control': 'public, max-age=31536000, immutable',
          'content-security-policy': "default-src 'none'; sandbox",
          'cross-origin-resource-policy': 'cross-origin',
        },
      }
    },
  })

const OTHER_TYPES = { 'image/jpeg': undefined, 'image/webp': undefined, 'image/gif': undefined }

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
