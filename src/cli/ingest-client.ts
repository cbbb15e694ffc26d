import type { WebSocket } from 'undici'
import { ApiClient } from './api-client.ts'

interface FromServer {
  type: string
  seq?: number
  window?: number
  windowBytes?: number
  rejected?: { index: number; code: string; message: string }[]
}

/** A point that the server refused: the number of its frame, as `send` returned it, and its index there. */
export interface Rejected {
  seq: number
  index: number
  code: string
  message: string
}

/** A connection of the ingest channel that respects the window and tracks acknowledgements. */
export class IngestClient {
  private readonly socket: WebSocket
  private sent = 0
  private acknowledged = 0
  private bytesSent = 0
  private bytesAcknowledged = 0
  private readonly unacknowledged: { seq: number; bytes: number }[] = []
  private window = 1
  private windowBytes = Number.POSITIVE_INFINITY
  private wakers: (() => void)[] = []
  private closeReason: string | undefined
  readonly rejected: Rejected[] = []

  private constructor(client: ApiClient) {
    this.socket = client.socket('/ingest')
  }

  /** @throws Error if the server refuses the credential or cannot be reached. */
  static async connect(service: string | ApiClient, credential: string): Promise<IngestClient> {
    const api = typeof service === 'string' ? new ApiClient(service) : service
    const client = new IngestClient(api)
    await new Promise<void>((done, failed) => {
      client.socket.onopen = () => client.socket.send(JSON.stringify({ type: 'auth', token: credential }))
      client.socket.onerror = () => failed(new Error(`cannot connect to ${api.url}`))
      client.socket.onclose = (event) => {
        client.closeReason = `${event.code} ${event.reason}`
        client.wake()
        failed(new Error(`the server closed the connection: ${client.closeReason}`))
      }
      client.socket.onmessage = ({ data }) => {
        client.hear(JSON.parse(String(data)) as FromServer)
        if (client.windowBytes !== Number.POSITIVE_INFINITY || client.window > 1) done()
      }
    })
    return client
  }

  /** Sends a frame as soon as the window has room; returns its number. */
  async send(points: readonly object[]): Promise<number> {
    const text = JSON.stringify({ type: 'points', seq: this.sent + 1, points })
    const bytes = Buffer.byteLength(text)
    while (this.isFull(bytes)) await this.change()
    this.sent++
    this.bytesSent += bytes
    this.unacknowledged.push({ seq: this.sent, bytes })
    this.socket.send(text)
    return this.sent
  }

  /** Waits until everything sent is durable. */
  async drained(): Promise<void> {
    while (this.acknowledged < this.sent) await this.change()
  }

  /** Frames up to this number are durable. */
  get acknowledgedSeq(): number {
    return this.acknowledged
  }

  close(): void {
    this.socket.close()
  }

  private isFull(bytes: number): boolean {
    const waiting = this.sent - this.acknowledged
    return waiting > 0 && (waiting >= this.window || this.bytesSent - this.bytesAcknowledged + bytes > this.windowBytes)
  }

  private hear(message: FromServer): void {
    if (message.type === 'ready') {
      this.window = message.window ?? 1
      this.windowBytes = message.windowBytes ?? Number.MAX_SAFE_INTEGER
    }
    if (message.type === 'ack') this.settle(message.seq ?? 0)
    if (message.type === 'reject')
      this.rejected.push(...(message.rejected ?? []).map((one) => ({ ...one, seq: message.seq ?? 0 })))
    this.wake()
  }

  private settle(seq: number): void {
    this.acknowledged = Math.max(this.acknowledged, seq)
    while (this.unacknowledged.length > 0 && this.unacknowledged[0].seq <= seq)
      this.bytesAcknowledged += this.unacknowledged.shift()?.bytes ?? 0
  }

  private async change(): Promise<void> {
    if (this.closeReason !== undefined) throw new Error(`the server closed the connection: ${this.closeReason}`)
    await new Promise<void>((resume) => this.wakers.push(resume))
    if (this.closeReason !== undefined) throw new Error(`the server closed the connection: ${this.closeReason}`)
  }

  private wake(): void {
    for (const resume of this.wakers.splice(0)) resume()
  }
}
