import { oneOf, optional } from '../../../kernel/schema.ts'
import type { RouteRequest } from '../../../kit/http/route.ts'
import type { IdentityContext } from '../context.ts'
import { cookie, cookieIn } from './cookies.ts'

/** Member of a sign-in that also begins a browser session. */
export const SESSION_MEMBER = { session: optional(oneOf('cookie')) }

export interface SessionMember {
  session?: 'cookie'
}

const COOKIE = 'waymark-session'
/** From the last use on. */
export const BROWSER_SESSION_MS = 30 * 86_400_000
/** Lifetime of tokens issued for a browser session. */
export const BROWSER_TOKEN_MS = 15 * 60_000
const PURPOSE = 'browser-session'
/** Value of the header `waymark-client` sent by the page. */
const CLIENT = 'console'

type Context = {
  services: Pick<IdentityContext['services'], 'keyring'>
  config: Pick<IdentityContext['config'], 'publicUrl'>
}

/** Encrypted content of the cookie. */
export interface BrowserCookie {
  identityId: string
  browserId: string
}

/** Header that stores the session in the browser. */
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

/** Header that removes the cookie, if the request has one. */
export const endOfCookie = (
  { config }: Pick<Context, 'config'>,
  request: Pick<RouteRequest, 'headers'>,
): { [name: string]: string } =>
  cookieIn(request, COOKIE) === undefined ? {} : { 'set-cookie': cookie(config.publicUrl, COOKIE, '', 0, 'Strict') }

/** Content of a request's cookie; undefined if it has none that we issued. */
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

/** Pages elsewhere can neither send our origin nor, without a preflight request, the other header. */
export const isOwnPage = ({ config }: Pick<Context, 'config'>, { headers }: Pick<RouteRequest, 'headers'>): boolean => {
  const origin = headers.get('origin')
  if (origin === undefined || headers.get('waymark-client') !== CLIENT || !URL.canParse(origin)) return false
  const { host, origin: page } = new URL(origin)
  return page === new URL(config.publicUrl).origin || host === headers.get('host')?.toLowerCase()
}
