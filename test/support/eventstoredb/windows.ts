import type { Http2Server, ServerHttp2Session, Settings } from 'node:http2'
import type { Server } from '@grpc/grpc-js'

/** What a server takes before it has to say that it takes more: as Kestrel has it since .NET 7, which real servers serve with. */
export const STREAM_WINDOW = 768 * 1024
export const CONNECTION_WINDOW = 1024 * 1024

/** What the library has no options for. */
interface ServerInside {
  commonServerOptions: { settings?: Settings }
  http2Servers: Map<Http2Server, unknown>
}

/** Called before the server is bound: windows of one stream. */
export const widenStreams = (server: Server): void => {
  const { commonServerOptions } = server as unknown as ServerInside
  commonServerOptions.settings = { ...commonServerOptions.settings, initialWindowSize: STREAM_WINDOW }
}

/** Called once the server is bound: windows of all streams of a connection together. */
export const widenConnections = (server: Server): void => {
  const widen = (session: ServerHttp2Session): void => session.setLocalWindowSize(CONNECTION_WINDOW)
  for (const listener of (server as unknown as ServerInside).http2Servers.keys()) listener.on('session', widen)
}
