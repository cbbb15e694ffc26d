import { oneOf, optional } from '../../../kernel/schema.ts'
import type { RouteRequest } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { cookie, cookieIn } from './cookies.ts'

/** The member of a sign-in that begins the session of a browser, too. */
export const SESSION_MEMBER = { session: optional(oneOf('cookie')) }

export interface SessionMember {
  session?: 'cookie'
}

const COOKIE = 'waymark-session'
/** From the last use on. */
export const BROWSER_SESSION_MS = 30 * 86_400_000
/** Life of the tokens that are issued for it. */
export const BROWSER_TOKEN_MS = 15 * 60_000
const PURPOSE = 'browser-session'
/** What the page says in the header `waymark-client`. */
const CLIENT = 'console'

type Context = {
  services: Pick<IdentityContext['services'], 'keyring'>
  config: Pick<IdentityContext['config'], 'publicUrl'>
}

/** What the cookie says, encrypted. */
export interface BrowserCookie {
  identityId: string
  browserId: string
}

/** The header that keeps the session in the browser. */
export const browserCookie = (
  { services: { keyring }, config }: Context,
  kept: BrowserCookie,
): { [name: string]: string } => ({
  'set-cookie': cookie(
    config.publicUrl,
    COOKIE,
    keyring.encrypt(PURPOSE, JSON.stringify(kept)),
    BROWSER_SESSION_MS,
    'Strict',
  ),
})

/** The header that takes it away, where the request has one. */
export const endOfCookie = (
  { config }: Pick<Context, 'config'>,
  request: Pick<RouteRequest, 'headers'>,
): { [name: string]: string } =>
  cookieIn(request, COOKIE) === undefined ? {} : { 'set-cookie': cookie(config.publicUrl, COOKIE, '', 0, 'Strict') }

/** What the cookie of a request says; undefined where it has none that we made. */
export const keptBy = (
  { services: { keyring } }: Pick<Context, 'services'>,
  request: Pick<RouteRequest, 'headers'>,
): BrowserCookie | undefined => {
  const value = cookieIn(request, COOKIE)
  if (value === undefined) return undefined
  try {
    return JSON.parse(keyring.decrypt(PURPOSE, value)) as BrowserCookie
  } catch {
    return undefined
  }
}

/** What runs elsewhere can neither name our origin as its own nor send the other header without asking first. */
export const isOwnPage = ({ config }: Pick<Context, 'config'>, { headers }: Pick<RouteRequest, 'headers'>): boolean => {
  const origin = headers.get('origin')
  if (origin === undefined || headers.get('waymark-client') !== CLIENT || !URL.canParse(origin)) return false
  const { host, origin: page } = new URL(origin)
  return page === new URL(config.publicUrl).origin || host === headers.get('host')?.toLowerCase()
}
