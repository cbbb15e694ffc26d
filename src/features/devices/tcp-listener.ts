import { type BlockList, createServer, isIPv6, type Server, type Socket } from 'node:net'
import { NotThisProtocol, type StreamProtocol } from '../../devices/stream.ts'
import { pause } from '../../kit/consumers/retry.ts'
import { DeviceSession, type SessionOptions, type Step } from './device-session.ts'

export interface ListenerLimits {
  connectionsMax: number
  connectionsPerAddressMax: number
  /** Time allowed until a device has identified itself. */
  loginMs: number
  /** Time allowed without a byte. */
  idleMs: number
  /** Delay before closing a connection whose points could not be stored: devices reconnect at once. */
  refusedMs: number
}

export const LISTENER_LIMITS: ListenerLimits = {
  connectionsMax: 50_000,
  connectionsPerAddressMax: 20_000,
  loginMs: 60_000,
  idleMs: 30 * 60_000,
  refusedMs: 2_000,
}

export interface ListenerOptions extends SessionOptions {
  host: string
  port: number
  stream: StreamProtocol
  /** Addresses that may connect; undefined: any. */
  allowed: BlockList | undefined
  limits: ListenerLimits
}

/** A port for one protocol over TCP. Each connection has one read in progress: further bytes wait in the network, also while the device reads no answers. */
export class TcpListener {
  private readonly options: ListenerOptions
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private readonly perAddress = new Map<string, number>()
  private isClosing = false

  private constructor(options: ListenerOptions) {
    this.options = options
    this.server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.take(socket))
  }

  /** @throws Error with one sentence if a port is taken */
  static async open(options: ListenerOptions): Promise<TcpListener> {
    const listener = new TcpListener(options)
    await new Promise<void>((resolve, reject) => {
      listener.server.once('error', (error) => reject(cannotListen(options, error)))
      listener.server.listen(options.port, options.host, resolve)
    })
    listener.server.on('error', (error) => options.logger.error('a listener failed', { error: String(error) }))
    return listener
  }

  get port(): number {
    return (this.server.address() as { port: number }).port
  }

  get connections(): number {
    return this.sockets.size
  }

  async close(): Promise<void> {
    this.isClosing = true
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  private take(socket: Socket): void {
    const address = socket.remoteAddress
    socket.on('error', () => undefined) // its close follows
    if (address === undefined || !this.mayConnect(address)) return void socket.destroy()
    this.sockets.add(socket)
    this.perAddress.set(address, (this.perAddress.get(address) ?? 0) + 1)
    const { clock, limits } = this.options
    const stopLogin = clock.after(limits.loginMs, () => socket.destroy())
    socket.setTimeout(limits.idleMs, () => socket.destroy())
    socket.once('close', () => {
      stopLogin()
      this.sockets.delete(socket)
      const left = (this.perAddress.get(address) ?? 1) - 1
      if (left > 0) this.perAddress.set(address, left)
      else this.perAddress.delete(address)
    })
    const session = new DeviceSession(this.options, this.options.stream.open())
    let served = Promise.resolve()
    // Some say all that they have and close their side at once: they are answered before the other one is closed.
    socket.on('end', () => void served.then(() => socket.end()))
    socket.on('data', (chunk) => {
      socket.pause()
      served = this.serve(socket, session, chunk, stopLogin).catch((error: unknown) => {
        if (!(error instanceof NotThisProtocol))
          this.options.logger.error('a device was not served', { error: String(error) })
        socket.destroy()
      })
    })
  }

  private mayConnect(address: string): boolean {
    const { allowed, limits } = this.options
    if (this.isClosing || this.sockets.size >= limits.connectionsMax) return false
    if ((this.perAddress.get(address) ?? 0) >= limits.connectionsPerAddressMax) return false
    return isAllowed(allowed, address)
  }

  private async serve(socket: Socket, session: DeviceSession, chunk: Uint8Array, stopLogin: () => void): Promise<void> {
    for (const step of session.read(chunk)) {
      const isGoingOn = await this.answer(socket, session, step, stopLogin)
      if (!isGoingOn) return
    }
    // Answers to a device that reads none would fill memory: it is heard again once they are gone.
    if (socket.writableNeedDrain) await drainOf(socket)
    if (!socket.destroyed) socket.resume()
  }

  private async answer(socket: Socket, session: DeviceSession, step: Step, stopLogin: () => void): Promise<boolean> {
    const { answer, ends, login } = await session.handle(step)
    if (login) stopLogin()
    if (answer !== undefined && socket.writable) socket.write(answer)
    // What was heard of a device that has gone is stored all the same: some send nothing twice.
    if (ends !== true) return !this.isClosing
    if (socket.destroyed) return false
    await pause(this.options.clock, this.options.limits.refusedMs)
    socket.destroySoon()
    return false
  }
}

/** Resolves once all is sent that was written, or at the end of the connection. */
const drainOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      socket.off('drain', end)
      socket.off('close', end)
      resolve()
    }
    socket.on('drain', end)
    socket.on('close', end)
  })

export const isAllowed = (allowed: BlockList | undefined, address: string): boolean =>
  allowed === undefined || allowed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

export const cannotListen = (
  { protocol, host, port }: Pick<ListenerOptions, 'protocol' | 'host' | 'port'>,
  cause: unknown,
): Error =>
  new Error(
    `--devices cannot listen for ${protocol} on ${host} port ${port}: the port is taken or the address is not this machine's`,
    { cause },
  )
