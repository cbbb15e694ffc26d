import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'

/** Stands between the service and an engine, and keeps its port while the engine is started anew behind it. */
export class TcpProxy {
  /** Port of the engine. */
  target: number
  private readonly server: Server
  private readonly pairs = new Set<readonly [Socket, Socket]>()
  private isSilent = false
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

  /** From now on nothing is forwarded either way, of old connections and new ones, and none of them is told so. */
  silence(): void {
    this.isSilent = true
    for (const pair of this.pairs) for (const socket of pair) socket.pause().unpipe()
  }

  /** New connections are forwarded again. The old ones stay silent for ever, as behind a gateway that has forgotten them. */
  speak(): void {
    this.isSilent = false
  }

  /** Each piece that the engine sends comes so much later. */
  slow(delayMs: number): void {
    this.delayMs = delayMs
  }

  async close(): Promise<void> {
    for (const pair of this.pairs) for (const socket of pair) socket.destroy()
    this.server.close()
    await once(this.server, 'close')
  }

  private take(client: Socket): void {
    client.on('error', () => undefined)
    if (this.isSilent) {
      // Taken by the system, heard by nobody.
      const pair = [client.pause(), client] as const
      this.pairs.add(pair)
      client.once('close', () => this.pairs.delete(pair))
      return
    }
    const engine = connect(this.target, '127.0.0.1')
    const pair = [client, engine] as const
    this.pairs.add(pair)
    client.pipe(engine)
    engine.on('data', (bytes) => {
      if (this.delayMs === 0) client.write(bytes)
      else setTimeout(() => client.destroyed || client.write(bytes), this.delayMs)
    })
    for (const socket of pair) {
      socket.on('error', () => undefined)
      socket.once('close', () => {
        this.pairs.delete(pair)
        if (this.isSilent) return
        for (const other of pair) other.destroy()
      })
    }
  }
}
