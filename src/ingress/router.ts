import findMyWay from 'find-my-way'
import type { Method, Route } from '../kit/http/route.ts'
import { compileRoute, type CompiledRoute } from './compile-route.ts'

export const API_BASE = '/api/v3'

export interface Match {
  route: CompiledRoute
  params: { [name: string]: string }
}

export interface Router {
  /** Undefined where no route has this method and path. `path` is without its query. */
  find(method: string, path: string): Match | undefined
  /** Methods of the routes at this path; none for an unknown path. */
  methodsAt(path: string): Method[]
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const PARAM_LENGTH_MAX = 1024

/** Builds the table of all routes and their aliases. @throws Error naming the routes that collide or do not compile. */
export const createRouter = (routes: readonly Route[]): Router => {
  const ways = findMyWay({ ignoreTrailingSlash: true, maxParamLength: PARAM_LENGTH_MAX })
  const taken = new Map<string, string>()
  const operationIds = new Set<string>()
  for (const route of routes) {
    for (const { method, path, operationId } of addressesOf(route)) {
      if (operationIds.has(operationId)) throw new Error(`two routes have the operationId ${operationId}`)
      operationIds.add(operationId)
      const address = `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`
      const other = taken.get(address)
      if (other !== undefined) throw new Error(`routes ${other} and ${operationId} collide at ${address}`)
      taken.set(address, operationId)
      const compiled = compileRoute(route, { method, path, operationId })
      ways.on(method, path.replace(/\{([^}]*)\}/g, ':$1'), () => undefined, compiled)
    }
  }
  const find = (method: string, path: string): Match | undefined => {
    const found = ways.find(method as Method, path)
    if (found === null) return undefined
    return { route: found.store as CompiledRoute, params: found.params as { [name: string]: string } }
  }
  return { find, methodsAt: (path) => METHODS.filter((method) => find(method, path) !== undefined) }
}

/** Addresses of a route: its own and those of its aliases, each with the full path, without a trailing slash. */
export const addressesOf = (route: Route): { method: Method; path: string; operationId: string }[] =>
  [{ path: route.path, operationId: route.operationId, method: route.method }, ...(route.aliases ?? [])].map(
    (address) => ({
      method: address.method ?? route.method,
      path: fullPath(address.path, route.root === true),
      operationId: address.operationId,
    }),
  )

const fullPath = (path: string, root: boolean): string => {
  if (!path.startsWith('/')) throw new Error(`the path ${path} does not begin with a slash`)
  const full = root ? path : API_BASE + path
  return full.length > 1 && full.endsWith('/') ? full.slice(0, -1) : full
}
