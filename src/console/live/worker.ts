// Owns the socket, so that parsing a large fleet's positions never blocks the page; passes on events in batches.
import type { FromWorker, ToWorker } from './messages.ts'
import { openLive } from './socket.ts'

const scope = globalThis as unknown as {
  postMessage(message: FromWorker, transfer: Transferable[]): void
  onmessage: ((event: { data: ToWorker }) => void) | null
}

const live = openLive({
  open: (url) => new WebSocket(url),
  later: (run, ms) => void setTimeout(run, ms),
  tell: (message) => {
    const { columns } = { columns: undefined, ...message }
    scope.postMessage(message, columns === undefined ? [] : [columns.indexes.buffer, columns.numbers.buffer])
  },
})
scope.onmessage = ({ data }) => live.hear(data)
