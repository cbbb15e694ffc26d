import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { JsonSchema } from '../kernel/json.ts'
import { route, type Route } from '../kit/http/route.ts'
import { staticFiles } from '../kit/http/static-files.ts'

const HERE = fileURLToPath(new URL('../../../src/web/', import.meta.url))
/** Output of `scripts/build-console.mjs` for src/console. */
const CONSOLE = fileURLToPath(new URL('../../console/', import.meta.url))

/** Only the map loads from outside; no inline code, since the console uses files and sets styles by script. */
const policyOf = (mapOrigins: readonly string[], scripts: string): string => {
  const more = mapOrigins.map((origin) => ` ${origin}`).join('')
  return `default-src 'none'; script-src ${scripts}; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:${more}; connect-src 'self'${more}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}
/** Workers follow the policy of their own file: the map's worker shapes Arabic with WebAssembly. */
const WORKER_SCRIPTS = "'self' 'wasm-unsafe-eval'"

const headersOf = (mapOrigins: readonly string[], scripts = "'self'") => ({
  'content-security-policy': policyOf(mapOrigins, scripts),
  'referrer-policy': 'no-referrer',
})

/** Pages of mailed links, by the operation that shows them. */
const ACCOUNT_PAGES = {
  '/accept-invitation': 'getInvitationPage',
  '/reset-password': 'getPasswordPage',
  '/verify-email': 'getAddressPage',
  '/forgot-password': 'getForgottenPage',
}

const FILES = [
  { path: '/web/account.js', file: `${HERE}account.js`, type: 'text/javascript', operationId: 'getAccountScript' },
  { path: '/web/style.css', file: `${HERE}style.css`, type: 'text/css', operationId: 'getPageStyle' },
]

export interface DemoLogin {
  email: string
  password: string
  /** Shown to everyone; otherwise only to clients on this machine. */
  isPublic: boolean
}

/** Data that the console gets with its page. */
export interface PageSettings {
  /** Ages of trackers that determine their state. */
  staleAfterMs: number
  offlineAfterMs: number
  /** An archive of streets, if there is one. */
  mapPath: string | undefined
  mapStyleUrl: string | undefined
  /** Origins that the style needs besides its own. */
  mapOrigins: readonly string[]
  signup: 'open' | 'first' | 'closed'
}

/** The console at `/`: it uses only the public API. `demoLogin` fills in its form while the demo runs. */
export const pageRoutes = (demoLogin: () => DemoLogin | undefined, settings: PageSettings): Route[] => [
  ...consoleRoutes(demoLogin, settings),
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

const consoleRoutes = (demoLogin: () => DemoLogin | undefined, settings: PageSettings): Route[] => {
  const { mapStyleUrl, mapOrigins } = settings
  const origins = mapStyleUrl === undefined ? mapOrigins : withOrigin(mapOrigins, mapStyleUrl)
  const page = fileRoute(
    '/',
    'getPage',
    'text/html; charset=utf-8',
    ({ isLocal }) => {
      const login = demoLogin()
      return pageWith(settings, login !== undefined && (login.isPublic || isLocal) ? login : undefined)
    },
    headersOf(origins),
  )
  if (!existsSync(`${CONSOLE}assets`)) return [page]
  const headers = headersOf(origins, WORKER_SCRIPTS)
  return [page, staticFiles({ folder: `${CONSOLE}assets`, path: '/assets', operationId: 'getPageAsset', headers })]
}

const withOrigin = (origins: readonly string[], url: string): string[] => [
  ...new Set([new URL(url).origin, ...origins]),
]

const accountPage = readFileSync(`${HERE}account.html`)
const TOKEN_QUERY: JsonSchema = {
  type: 'object',
  properties: { token: { type: 'string', maxLength: 200, description: 'The secret of the link.' } },
  additionalProperties: false,
}

const page = existsSync(`${CONSOLE}index.html`)
  ? readFileSync(`${CONSOLE}index.html`, 'utf8')
  : '<!doctype html><title>Waymark</title><p>The console has not been built: run npm run build, and start again.</p>'

const pageWith = (
  { staleAfterMs, offlineAfterMs, mapPath, mapStyleUrl, signup }: PageSettings,
  login: DemoLogin | undefined,
): Buffer => {
  const demoLogin = login && { email: login.email, password: login.password }
  const hasStreets = mapPath !== undefined
  const maySignUp = signup !== 'closed'
  const content = JSON.stringify({ staleAfterMs, offlineAfterMs, demoLogin, hasStreets, mapStyleUrl, maySignUp })
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll('<', '&lt;')
  return Buffer.from(page.replace('name="waymark" content=""', () => `name="waymark" content="${content}"`))
}

const fileRoute = (
  path: string,
  operationId: string,
  type: string,
  bytes: (request: { isLocal: boolean }) => Buffer,
  headers = headersOf([]),
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
        ...headers,
        'content-type': type,
        'cache-control': 'no-cache',
      },
      stream: chunksOf(bytes(request)),
    }),
  })

async function* chunksOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes
}
