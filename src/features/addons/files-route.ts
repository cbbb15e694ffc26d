import { Failure } from '../../kernel/errors.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import type { ResourceState } from '../../kit/resource/decider.ts'
import { addon, type AddonFile, type AddonServices } from './addon.ts'
import { addonKey, addonPath, FRAME } from './paths.ts'

const HASHED = /^[0-9a-f]{32}\./
const FILE_NAME = '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,140}$'
const FOR_EVER = 'public, max-age=31536000, immutable'

/**
 * Public files of add-ons. They run out of reach of the viewer's token: at a separate origin or, without one, in
 * documents with an opaque origin (`Content-Security-Policy: sandbox`).
 */
export const filesRoute = (services: AddonServices): Route =>
  route({
    method: 'GET',
    path: '/addon/{addonId}/files/{fileName}',
    operationId: 'readAddonFile',
    summary: 'A file of an add-on, for everyone who has its path',
    description: `Under the name with its hash, as \`path\` has it, a file never changes. Under its own name it is the file of now, and \`${FRAME}\` is a document that runs all scripts in their order. Not for \`<script>\` elements of pages of the service: scripts of add-ons run in that document alone.`,
    tag: addon.declaration.tag,
    access: 'public',
    isolated: true,
    params: {
      addonId: { type: 'string', format: 'uuid', description: 'The id of the add-on.' },
      fileName: { type: 'string', pattern: FILE_NAME, description: 'As `path` ends, or the name of the file.' },
    },
    answers: {
      200: { description: 'The file.', contentType: 'text/javascript', alsoAs: OTHER_TYPES, headers: ['ETag'] },
      308: { description: 'It is at the origin of add-ons.' },
    },
    handler: async (request) => {
      const { origin } = services
      const { addonId, fileName } = request.params
      const id = addonId.toLowerCase()
      const { state } = await addon.writer(services).load(id)
      if (state.status !== 'live') throw new Failure('not_found')
      if (origin !== undefined && request.headers.get('host') !== new URL(origin).host)
        return { status: 308, raw: '', headers: { location: origin + addonPath(id, fileName) } }
      assertNoPage(request, origin)
      return fileName === FRAME ? frame(state, origin) : file(services, state, id, fileName)
    },
  })

/**
 * Refuses scripts to pages of the service itself, where they would act as the viewer. Sandboxed documents send requests
 * from an opaque origin.
 */
const assertNoPage = ({ headers }: Pick<RouteRequest, 'headers'>, origin: string | undefined): void => {
  if (origin !== undefined) return
  const isScript = ['script', 'worker', 'sharedworker', 'serviceworker'].includes(headers.get('sec-fetch-dest') ?? '')
  if (isScript && headers.get('sec-fetch-site') === 'same-origin')
    throw new Failure('forbidden', { message: 'Scripts of add-ons run in their own document alone.' })
}

const file = async (services: AddonServices, state: ResourceState, id: string, name: string): Promise<Reply> => {
  const current = filesOf(state).find((one) => one.name === name || one.path.endsWith(`/${name}`))
  const hashed = HASHED.test(name) ? name : current?.path.slice(current.path.lastIndexOf('/') + 1)
  const found = hashed === undefined ? undefined : await services.files.get(addonKey(id, hashed))
  if (hashed === undefined || found === undefined) throw new Failure('not_found')
  return {
    stream: found.stream,
    headers: {
      'content-type': typeOf(hashed),
      'cache-control': HASHED.test(name) ? FOR_EVER : 'no-cache',
      'content-security-policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
      // Everyone may read the file; only with this header can a sandboxed document check its integrity.
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      etag: `"${hashed.slice(0, 32)}"`,
    },
  }
}

/** Document that runs the scripts. Its frame is reached by `postMessage` alone. */
const frame = ({ values }: ResourceState, origin: string | undefined): Reply => {
  const scripts = ((values.files ?? []) as unknown as AddonFile[]).map(
    ({ name, path, integrity }) =>
      `<script ${name.endsWith('.mjs') ? 'type="module"' : 'defer'} src="${path}" integrity="${integrity}" crossorigin="anonymous"></script>`,
  )
  const directives = [
    ...(origin === undefined ? ['sandbox allow-scripts allow-forms'] : []),
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'unsafe-inline'",
    'img-src https: data: blob:',
    'connect-src https:',
    "base-uri 'none'",
    "form-action 'none'",
    origin === undefined ? "frame-ancestors 'self'" : 'frame-ancestors http: https:',
  ]
  return {
    raw: `<!doctype html><meta charset="utf-8"><title>Add-on</title>${scripts.join('')}<body></body>`,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': directives.join('; '),
      'cache-control': 'no-cache',
      'cross-origin-resource-policy': 'cross-origin',
    },
  }
}

const filesOf = ({ values }: ResourceState): AddonFile[] => {
  const { files = [], icon } = values as unknown as { files?: AddonFile[]; icon?: AddonFile }
  return icon === undefined ? files : [...files, icon]
}

const TYPES: { [ending: string]: string } = {
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
}

const OTHER_TYPES = Object.fromEntries(
  ['text/html', ...Object.values(TYPES)]
    .filter((type) => !type.startsWith('text/javascript'))
    .map((type) => [type, undefined]),
)

const typeOf = (name: string): string => TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
