import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { Idempotency } from '../kit/http/idempotency.ts'
import { clientAddresses } from './address.ts'
import { Admission } from './authenticate.ts'
import { BodyBudget } from './body.ts'
import { documentRoutes } from './documents.ts'
import { HttpDoor } from './http.ts'
import { DEFAULT_LIMITS, type Ingress, type IngressLimits, type IngressOptions } from './options.ts'
import { API_BASE, createRouter } from './router.ts'
import { SocketDoor } from './sockets.ts'
import { App, SSLApp, us_listen_socket_close, us_socket_local_port } from './uws.ts'

/**
 * Opens the one door: HTTP routes and WebSocket channels on one port.
 * @throws Error when routes collide, a schema does not compile, or the port is taken.
 */
export const startIngress = async (options: IngressOptions): Promise<Ingress> => {
  const limits: IngressLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const idempotency = new Idempotency(options)
  await idempotency.declare()
  const router = createRouter([...options.routes, ...documentRoutes(options)])
  const addressOf = clientAddresses(options.trustedProxies ?? [])
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
    isTls: options.tls !== undefined,
    channelPaths: new Set(options.channels.map((channel) => API_BASE + channel.path)),
  })
  const app = await appOf(options.tls)
  const released = limitConnections(app, limits.connectionsMax)
  const sockets = new SocketDoor({ ...options, admission, addressOf, limits, released })
  for (const channel of options.channels) {
    const behavior = sockets.behaviorOf(channel)
    app.ws(API_BASE + channel.path, behavior)
    app.ws(`${API_BASE + channel.path}/`, behavior)
  }
  app.any('/*', (res, req) => http.handle(res, req))
  return opened(app, await listen(app, options.host, options.port), { options, http, sockets, limits })
}

const FLUSH_MS = 20

interface Parts {
  options: IngressOptions
  http: HttpDoor
  sockets: SocketDoor
  limits: IngressLimits
}

const opened = (app: TemplatedApp, listening: us_listen_socket, { options, http, sockets, limits }: Parts): Ingress => {
  const port = us_socket_local_port(listening)
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  let isAccepting = true
  let closing: Promise<void> | undefined
  const stopAccepting = (withinMs: number): Promise<void> => {
    if (isAccepting) us_listen_socket_close(listening)
    isAccepting = false
    http.isClosing = true
    sockets.isClosing = true
    return Promise.race([http.drained(), new Promise<void>((resolve) => options.clock.after(withinMs, resolve))])
  }
  const close = async (): Promise<void> => {
    const answered = stopAccepting(limits.closeTimeoutMs)
    sockets.closeAll()
    await answered
    // What was written last leaves before the connections are cut.
    await pause(FLUSH_MS)
    app.close()
  }
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    port,
    stopAccepting,
    close: () => (closing ??= close()),
  }
}

/** uWebSockets.js says nothing of what is wrong with its files: here they are read once before. */
const appOf = async (tls: IngressOptions['tls']): Promise<TemplatedApp> => {
  if (tls === undefined) return App()
  try {
    createSecureContext({ cert: await readFile(tls.certFile), key: await readFile(tls.keyFile) })
  } catch (error) {
    throw new Error(
      `the certificate ${tls.certFile} and key ${tls.keyFile} cannot be used: ${(error as Error).message}`,
      { cause: error },
    )
  }
  return SSLApp({ key_file_name: tls.keyFile, cert_file_name: tls.certFile })
}

/**
 * Cuts connections beyond the limit. Answers what has to be called when a WebSocket ends: uWebSockets.js counts a
 * connection that was upgraded in, but never out.
 */
const limitConnections = (app: TemplatedApp, connectionsMax: number): (() => void) => {
  let open = 0
  // biome-ignore lint/suspicious/useIterableCallbackReturn: this filter is no array's
  app.filter((res, change) => {
    open += change
    if (change > 0 && open > connectionsMax) res.close()
  })
  return () => void open--
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT: without it a second process could share the port. */
const EXCLUSIVE_PORT = 1

/** The four-argument form of `listen`, which the package's types leave out. */
type ListenExclusively = (
  host: string,
  port: number,
  options: number,
  opened: (socket: us_listen_socket | false) => void,
) => TemplatedApp

const listen = (app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> =>
  new Promise((resolve, reject) => {
    const listenExclusively = app.listen.bind(app) as unknown as ListenExclusively
    listenExclusively(host, port, EXCLUSIVE_PORT, (socket) => {
      if (socket === false)
        reject(
          new Error(`cannot listen on ${host} port ${port}: the port is taken or the address is not this machine's`),
        )
      else resolve(socket)
    })
  })
