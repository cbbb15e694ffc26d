import { setTimeout as pause } from 'node:timers/promises'
import { Idempotency } from '../kit/http/idempotency.ts'
import { clientAddresses } from './address.ts'
import { Admission } from './authenticate.ts'
import { BodyBudget } from './body.ts'
import { documentRoutes } from './documents.ts'
import { HttpDoor } from './http.ts'
import { DEFAULT_LIMITS, type Ingress, type IngressLimits, type IngressOptions } from './options.ts'
import { API_BASE, createRouter } from './router.ts'
import type { Port } from './port.ts'
import { SocketDoor } from './sockets.ts'

/**
 * Opens the ingress: HTTP routes and WebSocket channels on the port.
 * @throws Error when routes collide or a schema does not compile.
 */
export const startIngress = async (port: Port, options: IngressOptions): Promise<Ingress> => {
  const limits: IngressLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const idempotency = new Idempotency(options)
  await idempotency.declare()
  const router = createRouter([...options.routes, ...documentRoutes(options)])
  const addressOf = clientAddresses(options.trustedProxies ?? [], options.ownHosts)
  const admission = new Admission(options)
  const http = new HttpDoor({
    router,
    admission,
    idempotency,
    addressOf,
    limits,
    budget: new BodyBudget(limits.bodyBytesInFlightMax),
    clock: options.clock,
    logger: options.logger,
    metrics: options.metrics,
    settle: options.settle,
    corsOrigins: options.corsOrigins ?? [],
    isolatedHost: options.isolatedHost?.toLowerCase(),
    isTls: port.url.startsWith('https:'),
    channelPaths: new Set(options.channels.map((channel) => API_BASE + channel.path)),
  })
  const sockets = new SocketDoor({ ...options, admission, addressOf, limits, released: port.released })
  for (const channel of options.channels) {
    const behavior = sockets.behaviorOf(channel)
    port.app.ws(API_BASE + channel.path, behavior)
    port.app.ws(`${API_BASE + channel.path}/`, behavior)
  }
  port.serve((res, req) => http.handle(res, req))
  return opened(port, { options, http, sockets, limits })
}

const FLUSH_MS = 20

interface Parts {
  options: IngressOptions
  http: HttpDoor
  sockets: SocketDoor
  limits: IngressLimits
}

const opened = (port: Port, { options, http, sockets, limits }: Parts): Ingress => {
  let closing: Promise<void> | undefined
  const stopAccepting = (withinMs: number): Promise<void> => {
    port.stopListening()
    http.isClosing = true
    sockets.isClosing = true
    return drained(withinMs)
  }
  const drained = (withinMs: number): Promise<void> =>
    Promise.race([http.drained(), new Promise<void>((resolve) => options.clock.after(withinMs, resolve))])
  const close = async (): Promise<void> => {
    const answered = stopAccepting(limits.closeTimeoutMs)
    sockets.closeAll()
    await answered
    // The last writes leave before the connections are cut.
    await pause(FLUSH_MS)
    port.close()
    // A request that arrived meanwhile has begun to write: the engines close after it.
    await drained(limits.closeTimeoutMs)
  }
  return { stopAccepting, close: () => (closing ??= close()) }
}
