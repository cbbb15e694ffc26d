import type { Method, Route } from '../kit/http/route.ts'
import type { JsonSchema } from '../kernel/json.ts'
import type { Check } from '../kit/http/validate.ts'
import { compileQuery } from '../kit/http/compile-query.ts'
import { compileBody, compileParams } from './schemas.ts'

/** A route at one of its addresses, with the checks of its input. */
export interface CompiledRoute {
  declaration: Route
  method: Method
  /** Full path with `{name}` for parameters. */
  path: string
  operationId: string
  params: Check
  query: Check
  body: Check | undefined
  bodyRequired: boolean
  bodyBytesMax: number
  /** Lower case media types; none where the route takes no body. */
  contentTypes: readonly string[]
  idempotent: boolean
}

const BODY_BYTES_MAX = 1024 * 1024
/** Largest body of public routes: many half sent bodies of strangers must not fill the memory that all bodies share. */
const PUBLIC_BODY_BYTES_MAX = 64 * 1024
const METHODS_WITH_BODY: readonly Method[] = ['POST', 'PUT', 'PATCH', 'DELETE']

/** A route without a body accepts an empty object all the same; a member of it is refused by name. */
const NOTHING: JsonSchema = { type: 'object', additionalProperties: false }
const NOTHING_BYTES_MAX = 64 * 1024
const WRITES: readonly Method[] = ['POST', 'PUT', 'PATCH']

/** @throws Error naming the route whose access or path is wrong. */
export const compileRoute = (
  route: Route,
  address: { method: Method; path: string; operationId: string },
): CompiledRoute => {
  try {
    checkAccess(route)
    if ((route.body !== undefined || route.rawBody !== undefined) && !METHODS_WITH_BODY.includes(address.method))
      throw new Error('a GET takes no body')
    const body = route.body ?? (route.rawBody === undefined && WRITES.includes(address.method) ? NOTHING : undefined)
    return {
      declaration: route,
      ...address,
      params: compileParams(checkedParams(route, address.path)),
      query: compileQuery(route.query),
      body: body === undefined ? undefined : compileBody(body),
      bodyRequired: route.bodyRequired ?? (route.body !== undefined || route.rawBody !== undefined),
      bodyBytesMax: body === NOTHING ? NOTHING_BYTES_MAX : (route.bodyBytesMax ?? defaultMax(route)),
      contentTypes:
        route.rawBody?.contentTypes.map((type) => type.toLowerCase()) ??
        (body === undefined ? [] : ['application/json']),
      idempotent: address.method === 'POST' && route.idempotent !== false,
    }
  } catch (error) {
    throw new Error(`route ${address.operationId} (${address.method} ${address.path}): ${(error as Error).message}`, {
      cause: error,
    })
  }
}

const defaultMax = ({ access }: Route): number => (access === 'public' ? PUBLIC_BODY_BYTES_MAX : BODY_BYTES_MAX)

const checkAccess = ({ access }: Route): void => {
  const named = access === 'public' || access === 'user' || access === 'points' || access === 'operator'
  if (!named && typeof (access as { permission?: unknown } | undefined)?.permission !== 'string')
    throw new Error('it does not say who may call it')
}

const checkedParams = (route: Route, path: string): NonNullable<Route['params']> => {
  const params = route.params ?? {}
  const names = [...path.matchAll(/\{([^}]*)\}/g)].map((match) => match[1])
  for (const name of names) if (!Object.hasOwn(params, name)) throw new Error(`the parameter ${name} has no schema`)
  return Object.fromEntries(names.map((name) => [name, params[name]]))
}
