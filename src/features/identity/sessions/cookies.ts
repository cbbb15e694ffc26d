import type { RouteRequest } from '../../../kit/http/route.ts'

/** Only sign-in routes receive cookies. */
const PATH = '/api/v3/auth'

/** Value of `Set-Cookie`; a lifetime of 0 removes the cookie. */
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

export const cookieIn = ({ headers }: Pick<RouteRequest, 'headers'>, name: string): string | undefined =>
  new RegExp(`(?:^|;\\s*)${name}=([\\w.~+/=-]+)`).exec(headers.get('cookie') ?? '')?.[1]
