import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** What may wait in one connection of a slow proxy before the engine is no longer read. */
const WAITING_BYTES_MAX = 1024 * 1024

/** Stands between the service and an engine, keeps its port while the engine is started anew behind it, and does what networks do. */
export class TcpProxy {
  /** Port of the engine. */
  target: number
  private readonly server: Server
  private readonly links = new Set<Link>()
  private lost: Lost | undefined
  private delayMs = 0

  private constructor(target: number) {
    this.target = target
    this.server = createServer((client) => this.take(client))
  }

  static async open(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target)
    proxy.server.listen(0, '127.0.0.1')
    await once(proxy.server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  /** Connections that one side holds at least, silent ones too. */
  get connections(): number {
    return this.links.size
  }

  /**
   * From now on nothing is forwarded, of old connections and new ones, and none of them is told so: half open. With
   * `answers` the engine still hears all that is asked of it.
   */
  silence(lost: Lost = 'everything'): void {
    this.lost = lost
    for (const link of this.links) link.silence(lost)
  }

  /** New connections are forwarded again. The old ones stay silent for ever, as behind a gateway that has forgotten them. */
  speak(): void {
    this.lost = undefined
  }

  /** The old connections go on, too, with all that was held back: a network that was stuck. */
  heal(): void {
    this.lost = undefined
    for (const link of this.links) link.heal()
  }

  /** Each piece that the engine sends comes so much later, in order; 0 ends it. */
  slow(delayMs: number): void {
    this.delayMs = delayMs
  }

  /** Resets every connection. New ones are taken. */
  cut(): void {
    for (const link of this.links) link.reset()
  }

  async close(): Promise<void> {
    for (const link of this.links) link.reset()
    this.server.close()
    await once(this.server, 'close')
  }

  private take(client: Socket): void {
    const link = new Link(client, this.target, () => this.delayMs)
    this.links.add(link)
    link.onGone(() => this.links.delete(link))
    if (this.lost !== undefined) link.silence(this.lost)
  }
}

type Lost = 'everything' | 'answers'

/** One connection of the service and the one to the engine that was made for it. */
class Link {
  private readonly client: Socket
  private readonly engine: Socket
  private readonly delayMs: () => number
  private isSilent = false
  private waitingBytes = 0
  /** What was on its way to the client when it fell silent. */
  private held: Buffer[] = []
  /** Ends when the last piece that was delayed is handed on, so that none overtakes another. */
  private handedOn: Promise<void> = Promise.resolve()

  constructor(client: Socket, target: number, delayMs: () => number) {
    this.client = client
    this.engine = connect(target, '127.0.0.1')
    this.delayMs = delayMs
    client.pipe(this.engine)
    this.engine.on('data', (bytes) => this.answer(bytes))
    for (const [socket, other] of [
      [client, this.engine],
      [this.engine, client],
    ]) {
      socket.on('error', () => undefined)
      // Behind a silent gateway neither side hears that the other one has gone.
      socket.once('close', () => (this.isSilent ? other.unref() : other.destroy()))
    }
  }

  /** Called once both sides are closed: behind a silent link the engine's side stays when the client's goes. */
  onGone(listener: () => void): void {
    for (const socket of [this.client, this.engine])
      socket.once('close', () => {
        if (this.client.closed && this.engine.closed) listener()
      })
  }

  silence(lost: Lost): void {
    this.isSilent = true
    this.engine.pause()
    if (lost === 'everything') this.client.unpipe().pause()
  }

  heal(): void {
    this.isSilent = false
    if (this.client.destroyed || this.engine.destroyed) return this.reset()
    for (const bytes of this.held.splice(0)) this.handOn(bytes)
    this.client.pipe(this.engine)
    this.engine.resume()
  }

  reset(): void {
    // Node never closes a socket that is reset while it ends, and its process then runs on for ever.
    if (this.client.writableEnded) this.client.destroy()
    else this.client.resetAndDestroy()
    this.engine.destroy()
  }

  private answer(bytes: Buffer): void {
    const delayMs = this.delayMs()
    if (delayMs === 0 && this.waitingBytes === 0) return this.handOn(bytes)
    this.waitingBytes += bytes.byteLength
    if (this.waitingBytes > WAITING_BYTES_MAX) this.engine.pause()
    const before = this.handedOn
    this.handedOn = Promise.all([before, pause(delayMs, undefined, { ref: false })]).then(() => {
      this.waitingBytes -= bytes.byteLength
      this.handOn(bytes)
      if (!this.isSilent) this.engine.resume()
    })
  }

  private handOn(bytes: Buffer): void {
    if (this.isSilent) return void this.held.push(bytes)
    if (this.client.destroyed || this.client.write(bytes)) return
    this.engine.pause()
    this.client.once('drain', () => this.isSilent || this.engine.resume())
  }
}
