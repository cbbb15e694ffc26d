import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { Aedes } from 'aedes'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'

/** A broker of MQTT whose sessions outlive it, as on disk. */
export class Broker {
  readonly port: number
  /** Packet ids that subscribers acknowledged, by client. */
  readonly acknowledged: { client: string; topic: string }[] = []
  readonly aedes: Aedes
  private server: Server | undefined
  private readonly sockets = new Set<Socket>()

  private constructor(port: number, aedes: Aedes) {
    this.port = port
    this.aedes = aedes
    aedes.on('ack', (packet, client) => {
      if (packet && 'topic' in packet) this.acknowledged.push({ client: client.id, topic: String(packet.topic) })
    })
  }

  static async start(t: Test, options: ConstructorParameters<typeof Aedes>[0] = {}): Promise<Broker> {
    const aedes = await Aedes.createBroker(options)
    const broker = new Broker(await freePort(), aedes)
    await broker.listen()
    t.teardown(async () => {
      await broker.kill()
      await new Promise<void>((closed) => aedes.close(() => closed()))
    })
    return broker
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`
  }

  async listen(): Promise<void> {
    this.server = createServer((socket) => {
      this.sockets.add(socket)
      socket.once('close', () => this.sockets.delete(socket))
      this.aedes.handle(socket)
    })
    this.server.listen(this.port, '127.0.0.1')
    await once(this.server, 'listening')
  }

  /** Every connection ends in the middle of whatever it was doing; nobody gets a new one. */
  async kill(): Promise<void> {
    const { server } = this
    this.server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    // Node never closes a socket that is reset while it ends.
    for (const socket of this.sockets) socket.writableEnded ? socket.destroy() : socket.resetAndDestroy()
    await closed
  }
}
