import { App, us_socket_local_port } from '../../src/ingress/uws.ts'

/**
 * The ceiling of this machine for this generator: uWebSockets.js and JSON.parse, everything thrown away, one cumulative
 * acknowledgement for each turn of the event loop.
 */
const waiting = new Map<import('uWebSockets.js').WebSocket<{ seq: number }>, number>()
let armed = false

const flush = (): void => {
  armed = false
  for (const [socket, seq] of waiting) socket.send(`{"type":"ack","seq":${seq}}`)
  waiting.clear()
}

App()
  .ws<{ seq: number }>('/api/v3/ingest', {
    maxPayloadLength: 1024 * 1024,
    upgrade: (response, request, context) =>
      response.upgrade(
        { seq: 0 },
        request.getHeader('sec-websocket-key'),
        request.getHeader('sec-websocket-protocol'),
        request.getHeader('sec-websocket-extensions'),
        context,
      ),
    open: (socket) => void socket.send('{"type":"ready","window":4096,"windowBytes":16777216}'),
    message: (socket, message) => {
      const data = socket.getUserData()
      const frame = JSON.parse(Buffer.from(message).toString()) as { points: unknown[] }
      if (frame.points.length > 0) data.seq++
      waiting.set(socket, data.seq)
      if (armed) return
      armed = true
      setImmediate(flush)
    },
    close: (socket) => void waiting.delete(socket),
  })
  .listen('127.0.0.1', 0, (token) => {
    if (!token) process.exit(1)
    process.stdout.write(`${us_socket_local_port(token)}\n`)
  })
