import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { JsonSchema } from '../kernel/json.ts'
import { route, type Route } from '../kit/http/route.ts'

const HERE = fileURLToPath(new URL('../../../src/web/', import.meta.url))
/** Compiled: it imports nothing, so that the browser takes it as it is. */
const WORDS = fileURLToPath(new URL('../kernel/words.js', import.meta.url))
const require = createRequire(import.meta.url)
const MAPLIBRE = require.resolve('maplibre-gl/package.json').replace(/package\.json$/, 'dist/')

/** Nothing from outside, no inline code; MapLibre paints with a worker of its own file and sets styles by script. */
const POLICY =
  "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** What links in mails lead to, by the operation that shows it. */
const ACCOUNT_PAGES = {
  '/accept-invitation': 'getInvitationPage',
  '/reset-password': 'getPasswordPage',
  '/verify-email': 'getAddressPage',
  '/forgot-password': 'getForgottenPage',
}

const FILES = [
  { path: '/web/account.js', file: `${HERE}account.js`, type: 'text/javascript', operationId: 'getAccountScript' },
  { path: '/web/app.js', file: `${HERE}app.js`, type: 'text/javascript', operationId: 'getPageScript' },
  { path: '/web/geometry.js', file: `${HERE}geometry.js`, type: 'text/javascript', operationId: 'getPageGeometry' },
  { path: '/web/live.js', file: `${HERE}live.js`, type: 'text/javascript', operationId: 'getPageLive' },
  { path: '/web/map.js', file: `${HERE}map.js`, type: 'text/javascript', operationId: 'getPageMap' },
  { path: '/web/sign-in.js', file: `${HERE}sign-in.js`, type: 'text/javascript', operationId: 'getPageSignIn' },
  { path: '/web/words.js', file: WORDS, type: 'text/javascript', operationId: 'getPageWords' },
  { path: '/web/style.css', file: `${HERE}style.css`, type: 'text/css', operationId: 'getPageStyle' },
  {
    path: '/web/maplibre-gl.js',
    file: `${MAPLIBRE}maplibre-gl-csp.js`,
    type: 'text/javascript',
    operationId: 'getMapScript',
  },
  {
    path: '/web/maplibre-gl-worker.js',
    file: `${MAPLIBRE}maplibre-gl-csp-worker.js`,
    type: 'text/javascript',
    operationId: 'getMapWorker',
  },
  { path: '/web/maplibre-gl.css', file: `${MAPLIBRE}maplibre-gl.css`, type: 'text/css', operationId: 'getMapStyle' },
]

export interface DemoLogin {
  email: string
  password: string
  /** Shown to everyone; otherwise to clients on this machine alone. */
  isPublic: boolean
}

/** The page at `/`: the fleet, live, by the public API alone. `demoLogin` fills its form in while the demo runs. */
export const pageRoutes = (demoLogin: () => DemoLogin | undefined): Route[] => [
  fileRoute('/', 'getPage', 'text/html; charset=utf-8', ({ isLocal }) => {
    const login = demoLogin()
    return pageWith(login !== undefined && (login.isPublic || isLocal) ? login : undefined)
  }),
  ...Object.entries(ACCOUNT_PAGES).map(([path, operationId]) => ({
    ...fileRoute(path, operationId, 'text/html; charset=utf-8', () => accountPage),
    summary: 'A page that links in mails lead to',
    query: TOKEN_QUERY,
  })),
  ...FILES.map(({ path, file, type, operationId }) => {
    const bytes = readFileSync(file)
    return fileRoute(path, operationId, type, () => bytes)
  }),
]

const accountPage = readFileSync(`${HERE}account.html`)
const TOKEN_QUERY: JsonSchema = {
  type: 'object',
  properties: { token: { type: 'string', maxLength: 200, description: 'The secret of the link.' } },
  additionalProperties: false,
}

const page = readFileSync(`${HERE}index.html`, 'utf8')

const pageWith = (login: DemoLogin | undefined): Buffer => {
  const content =
    login === undefined
      ? ''
      : JSON.stringify({ email: login.email, password: login.password })
          .replaceAll('&', '&amp;')
          .replaceAll('"', '&quot;')
          .replaceAll('<', '&lt;')
  return Buffer.from(page.replace('name="demo-login" content=""', () => `name="demo-login" content="${content}"`))
}

const fileRoute = (
  path: string,
  operationId: string,
  type: string,
  bytes: (request: { isLocal: boolean }) => Buffer,
): Route =>
  route({
    method: 'GET',
    path,
    root: true,
    operationId,
    summary: path === '/' ? 'A page that shows the fleet live' : `A file of the page: ${path}`,
    tag: 'Page',
    access: 'public',
    answers: { 200: { description: 'The file', contentType: type } },
    handler: async (request) => ({
      headers: {
        'content-type': type,
        'content-security-policy': POLICY,
        'cache-control': 'no-cache',
        'referrer-policy': 'no-referrer',
      },
      stream: chunksOf(bytes(request)),
    }),
  })

async function* chunksOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes
}
