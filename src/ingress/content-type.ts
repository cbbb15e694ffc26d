import { Failure } from '../kernel/errors.ts'
import type { CompiledRoute } from './compile-route.ts'

/** Bodies are not inflated: a few bytes could become gigabytes. @throws Failure unsupported_type */
export const assertPlain = (contentEncoding = 'identity'): void => {
  if (contentEncoding.trim().toLowerCase() !== 'identity')
    throw new Failure('unsupported_type', { message: 'Send the body without a Content-Encoding.' })
}

/** @throws Failure unsupported_type for a type that the route does not take. */
export const assertType = (route: CompiledRoute, contentType: string | undefined): void => {
  const [essence, ...parameters] = (contentType ?? '').toLowerCase().split(';')
  const type = essence.trim()
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='))
  const isCharsetRight =
    route.body === undefined || charset === undefined || /^charset="?(utf-8|utf8|us-ascii)"?$/.test(charset)
  const isJsonVariant = route.body !== undefined && /^application\/[\w.-]+\+json$/.test(type)
  if (isCharsetRight && (isJsonVariant || route.contentTypes.includes(type) || route.contentTypes.includes('*/*')))
    return
  throw new Failure('unsupported_type', {
    message: `Send ${route.contentTypes.join(' or ')}${route.body === undefined ? '' : ' in UTF-8'}.`,
  })
}
