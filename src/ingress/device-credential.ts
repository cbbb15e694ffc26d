import type { BodyReader } from './body.ts'
import type { Exchange } from './exchange.ts'

/** A larger form holds no key of a device: the body of a stranger is read up to this. */
const FORM_BYTES_MAX = 64 * 1024
const DEVICE_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[\w-]{43}$/i

/**
 * The credential of a client that sends it wherever its settings allow: bearer, password of HTTP Basic, `?key=`, `id`
 * or `deviceid` of query or form where that is a key, the path. The first one found counts.
 */
export const deviceCredential = async (
  exchange: Exchange,
  pathKey: string | undefined,
  reader: BodyReader | undefined,
): Promise<string | undefined> => {
  const authorization = exchange.headers.get('authorization')
  const query = new URLSearchParams(exchange.queryText)
  return (
    (isBasic(authorization) ? passwordOf(authorization) : exchange.bearer) ||
    query.get('key') ||
    keyNamed(query) ||
    (await keyInForm(exchange, reader)) ||
    pathKey
  )
}

const isBasic = (authorization: string | undefined): authorization is string => /^basic /i.test(authorization ?? '')

/** Without a password it only names somebody. */
const passwordOf = (authorization: string): string => {
  const [, password = ''] = /^[^:]*:([\s\S]*)$/.exec(Buffer.from(authorization.slice(6), 'base64').toString()) ?? []
  return password
}

const keyNamed = (parameters: URLSearchParams): string | undefined =>
  ['id', 'deviceid'].map((name) => parameters.get(name) ?? '').find((value) => DEVICE_KEY.test(value))

/** Clients of forms often send no content type, or another one: what is no JSON may be a form. */
const keyInForm = async ({ declaredBytes }: Exchange, reader?: BodyReader): Promise<string | undefined> => {
  if (reader === undefined || (declaredBytes ?? reader.bytesMax) > FORM_BYTES_MAX) return undefined
  const body = await reader.bytes()
  if (/^\s*[{[]/.test(body.toString('latin1', 0, 64))) return undefined
  const parameters = new URLSearchParams(body.toString())
  return parameters.get('key') || keyNamed(parameters)
}
