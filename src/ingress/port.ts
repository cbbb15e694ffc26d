import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { starting } from '../kit/operations/operations-routes.ts'
import { answerFailure, answerJson, sendWhole } from './reply.ts'
import { App, SSLApp, us_listen_socket_close, us_socket_local_port } from './uws.ts'

export interface PortOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** Files in PEM. */
  tls?: { certPath: string; keyPath: string }
  /** Further connections, of HTTP and WebSocket together, are cut. */
  connectionsMax?: number
}

export type HandleRequest = (res: HttpResponse, req: HttpRequest) => void

/** The one port of the process. Until `serve` is called it answers that the process is alive and the service starts. */
export interface Port {
  url: string
  port: number
  app: TemplatedApp
  /** From now on requests are handed on. The caller adds channels to `app`. */
  serve(handle: HandleRequest): void
  /** Call it when a WebSocket ends: uWebSockets.js counts an upgraded connection in, but never out. */
  released(): void
  /** No new connections; open ones stay. */
  stopListening(): void
  /** Cuts every connection. */
  close(): void
}

const CONNECTIONS_MAX = 65_536

/** @throws Error with one sentence for a port in use, an address of another machine, or unusable files of TLS. */
export const openPort = async ({ host, port, tls, connectionsMax = CONNECTIONS_MAX }: PortOptions): Promise<Port> => {
  const app = await appOf(tls)
  let handle = startingAnswer
  let open = 0
  // biome-ignore lint/suspicious/useIterableCallbackReturn: this filter is no array's
  app.filter((res, change) => {
    open += change
    if (change > 0 && open > connectionsMax) res.close()
  })
  app.any('/*', (res, req) => handle(res, req))
  const listening = await listen(app, host, port)
  const localPort = us_socket_local_port(listening)
  let isListening = true
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${localPort}`,
    port: localPort,
    app,
    serve: (given) => {
      handle = given
    },
    released: () => void open--,
    stopListening: () => {
      if (isListening) us_listen_socket_close(listening)
      isListening = false
    },
    close: () => app.close(),
  }
}

const startingAnswer: HandleRequest = (res, req) => {
  const answer =
    req.getUrl() === '/healthz'
      ? answerJson(200, { data: { alive: true } })
      : answerFailure(starting(req.getUrl() === '/readyz' ? { engines: [] } : undefined))
  sendWhole(res, answer, req.getMethod() === 'head')
}

/** uWebSockets.js does not report faults of its files: here they are read once before. */
const appOf = async (tls: PortOptions['tls']): Promise<TemplatedApp> => {
  if (tls === undefined) return App()
  try {
    createSecureContext({ cert: await readFile(tls.certPath), key: await readFile(tls.keyPath) })
  } catch (error) {
    throw new Error(
      `the certificate ${tls.certPath} and key ${tls.keyPath} cannot be used: ${(error as Error).message}`,
      { cause: error },
    )
  }
  return SSLApp({ key_file_name: tls.keyPath, cert_file_name: tls.certPath })
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
