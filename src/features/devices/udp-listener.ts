import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { NotThisProtocol, type Said } from '../../devices/stream.ts'
import { DeviceSession } from './device-session.ts'
import { cannotListen, isAllowed, type ListenerOptions } from './tcp-listener.ts'

/** Most datagrams in progress; further ones are dropped, and their devices resend them. */
const UNDER_WAY_MAX = 1_000

/** A port for one protocol over UDP: each datagram names its sender, and is answered once its points are durable. */
export class UdpListener {
  private readonly options: ListenerOptions
  private readonly socket: Socket
  private underWay = 0

  private constructor(options: ListenerOptions) {
    this.options = options
    this.socket = createSocket(isIPv6(options.host) ? 'udp6' : 'udp4')
  }

  /** @throws Error with one sentence if a port is taken */
  static async open(options: ListenerOptions): Promise<UdpListener> {
    const listener = new UdpListener(options)
    const { socket } = listener
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error) => reject(cannotListen(options, error)))
      socket.bind({ port: options.port, address: options.host, exclusive: true }, resolve)
    })
    socket.removeAllListeners('error')
    socket.on('error', (error) => options.logger.error('a listener failed', { error: String(error) }))
    socket.on('message', (datagram, from) => listener.take(datagram, from))
    return listener
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.socket.close(() => resolve()))
  }

  private take(datagram: Buffer, from: RemoteInfo): void {
    if (this.underWay >= UNDER_WAY_MAX || !isAllowed(this.options.allowed, from.address)) return
    this.underWay++
    void this.serve(datagram, from)
      .catch((error: unknown) => {
        if (!(error instanceof NotThisProtocol))
          this.options.logger.error('a device was not served', { error: String(error) })
      })
      .finally(() => this.underWay--)
  }

  private async serve(datagram: Buffer, from: RemoteInfo): Promise<void> {
    const { stream, clock } = this.options
    const said: Said[] = stream.readDatagram?.(datagram, clock.now()) ?? []
    const session = new DeviceSession(this.options, stream.open())
    for (const one of said) {
      const { answer, ends } = await session.handle(one)
      if (answer !== undefined) this.socket.send(answer, from.port, from.address)
      if (ends) return
    }
  }
}
