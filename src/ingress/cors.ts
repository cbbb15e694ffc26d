import type { Method } from '../kit/http/route.ts'

export type Headers = { [name: string]: string }

const EXPOSED =
  'Link, Location, ETag, Retry-After, RateLimit, RateLimit-Policy, Waymark-Pending, X-Request-Id, Content-Disposition, Accept-Ranges, Content-Range'
const REQUEST_HEADERS = 'Authorization, Content-Type, Idempotency-Key, If-Match, Traceparent'
const PREFLIGHT_SECONDS = '600'

/** Headers for an answer to a page of another origin; none when the origin is not on the list. */
export const corsHeaders = (origins: readonly string[], origin: string | undefined): Headers | undefined => {
  if (origin === undefined || origins.length === 0) return undefined
  const allowed = origins.includes('*') ? '*' : origins.includes(origin) ? origin : undefined
  if (allowed === undefined) return { vary: 'Origin' }
  return { 'access-control-allow-origin': allowed, 'access-control-expose-headers': EXPOSED, vary: 'Origin' }
}

/** Headers of an answer to OPTIONS; the methods are those of the path. */
export const optionsHeaders = (methods: readonly Method[], isAllowedOrigin: boolean): Headers => {
  const list = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  if (!isAllowedOrigin) return { allow: list }
  return {
    allow: list,
    'access-control-allow-methods': list,
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': PREFLIGHT_SECONDS,
  }
}
