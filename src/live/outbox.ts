import type { ChannelSocket } from '../kit/http/channel.ts'
import { BoundedQueue } from '../kernel/bounded-queue.ts'

/** Bytes in the socket's own buffer above which nothing more is handed to it. */
const SOCKET_BYTES_MAX = 256 * 1024
/** Maximum that waits for one client beside that. */
const WAITING_MAX = 5_000
const WAITING_BYTES_MAX = 4 * 1024 * 1024

/**
 * Messages for one client. Those that must arrive wait here, bounded, while the client reads slowly; positions are not
 * put here at all while `congested`: they are conflated at their source.
 */
export class Outbox {
  private readonly socket: ChannelSocket
  private waiting = new BoundedQueue<string>(WAITING_MAX, WAITING_BYTES_MAX)
  private buffered = 0
  private awaiting: (() => void)[] = []

  constructor(socket: ChannelSocket) {
    this.socket = socket
  }

  get congested(): boolean {
    return this.waiting.length > 0 || this.buffered > SOCKET_BYTES_MAX
  }

  /** Answers false when the message no longer fits: the client has to be closed. */
  send(text: string): boolean {
    if (this.congested) return this.waiting.push(text, text.length)
    this.buffered = this.socket.send(text)
    return true
  }

  /** Resolves once the socket has taken everything, or is gone; after an abort of the signal at the next `wake`. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.congested && !signal.aborted) await new Promise<void>((resume) => this.awaiting.push(resume))
  }

  /** The socket is gone, with its waiting messages. */
  close(): void {
    this.waiting = new BoundedQueue<string>(0)
    this.buffered = 0
    this.wake()
  }

  /** The socket has room again. */
  drain(): void {
    this.buffered = this.socket.bufferedBytes()
    while (this.waiting.length > 0 && this.buffered <= SOCKET_BYTES_MAX)
      this.buffered = this.socket.send(this.waiting.shift() as string)
    if (!this.congested) this.wake()
  }

  /** Makes senders that wait for room look again. */
  wake(): void {
    const awaiting = this.awaiting
    this.awaiting = []
    for (const resume of awaiting) resume()
  }
}
