import type { RouteRequest } from '../../../kit/http/route.ts'

/** Only what signs in gets cookies back. */
const PATH = '/api/v3/auth'

/** The value of `Set-Cookie`; a life of 0 takes the cookie away. */
export const cookie = (
  publicUrl: string,
  name: string,
  value: string,
  lifeMs: number,
  sameSite: 'Lax' | 'Strict',
): string => {
  const secure = publicUrl.startsWith('https:') ? '; Secure' : ''
  return `${name}=${value}; Path=${PATH}; Max-Age=${lifeMs / 1_000}; HttpOnly; SameSite=${sameSite}${secure}`
}

/** The cookie of that name that a request has. */
export const cookieIn = ({ headers }: Pick<RouteRequest, 'headers'>, name: string): string | undefined =>
  new RegExp(`(?:^|;\\s*)${name}=([\\w.~+/=-]+)`).exec(headers.get('cookie') ?? '')?.[1]
