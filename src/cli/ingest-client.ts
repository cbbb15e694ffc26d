import { WebSocket } from 'undici'

interface FromServer {
  type: string
  seq?: number
  window?: number
  windowBytes?: number
  rejected?: { index: number; code: string; message: string }[]
}

/** One connection of the ingest channel that keeps to the window and knows what is acknowledged. */
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
  readonly rejected: { index: number; code: string; message: string }[] = []

  private constructor(url: string) {
    this.socket = new WebSocket(`${url.replace(/^http/, 'ws')}/api/v3/ingest`)
  }

  /** @throws Error when the server refuses the credential or is not there. */
  static async connect(url: string, credential: string): Promise<IngestClient> {
    const client = new IngestClient(url)
    await new Promise<void>((done, failed) => {
      client.socket.onopen = () => client.socket.send(JSON.stringify({ type: 'auth', token: credential }))
      client.socket.onerror = () => failed(new Error(`cannot connect to ${url}`))
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

  /** Sends a frame as soon as the window has room. */
  async send(points: readonly object[]): Promise<void> {
    const text = JSON.stringify({ type: 'points', seq: this.sent + 1, points })
    const bytes = Buffer.byteLength(text)
    while (this.isFull(bytes)) await this.change()
    this.sent++
    this.bytesSent += bytes
    this.unacknowledged.push({ seq: this.sent, bytes })
    this.socket.send(text)
  }

  /** Waits until everything sent is durable. */
  async drained(): Promise<void> {
    while (this.acknowledged < this.sent) await this.change()
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
    if (message.type === 'reject') this.rejected.push(...(message.rejected ?? []))
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
