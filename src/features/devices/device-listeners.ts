import type { DeviceProtocol } from '../../devices/stream.ts'
import type { FlagKey } from './flag-key.ts'
import { LISTENER_LIMITS, type ListenerLimits, type ListenerOptions, TcpListener } from './tcp-listener.ts'
import { STREAM_PROTOCOLS } from './stream-protocols.ts'
import { UdpListener } from './udp-listener.ts'

/** A port as `--devices` names it. */
export interface DevicePort {
  protocol: DeviceProtocol
  port: number
}

/** State of a listener in `waymark doctor`. */
export interface ListenerState extends DevicePort {
  connections: number
  /** Devices that were refused within the last hour. */
  unknown: readonly string[]
  /** Reason why no device at all is served. */
  problem?: string
}

type Shared = Omit<ListenerOptions, 'protocol' | 'port' | 'stream' | 'limits' | 'caller'> & {
  key: Pick<FlagKey, 'caller' | 'problem'>
  limits?: Partial<ListenerLimits>
}

export class DeviceListeners {
  private readonly options: Shared
  private readonly tcp: { protocol: DevicePort['protocol']; listener: TcpListener }[] = []
  private readonly udp: UdpListener[] = []

  private constructor(options: Shared) {
    this.options = options
  }

  /** @throws Error with one sentence if a port is taken */
  static async open(ports: readonly DevicePort[], options: Shared): Promise<DeviceListeners> {
    const listeners = new DeviceListeners(options)
    try {
      for (const one of ports) await listeners.add(one)
    } catch (error) {
      await listeners.close()
      throw error
    }
    return listeners
  }

  state(): ListenerState[] {
    const { key } = this.options
    const unknown = this.options.unknown.recent()
    return this.tcp.map(({ protocol, listener }) => ({
      protocol,
      port: listener.port,
      connections: listener.connections,
      unknown: unknown.filter((name) => name.startsWith(`${protocol} `)),
      ...(key.problem !== undefined && { problem: key.problem }),
    }))
  }

  async close(): Promise<void> {
    await Promise.all([...this.tcp.map(({ listener }) => listener.close()), ...this.udp.map((one) => one.close())])
  }

  private async add({ protocol, port }: DevicePort): Promise<void> {
    const stream = STREAM_PROTOCOLS[protocol]
    const limits = { ...LISTENER_LIMITS, ...this.options.limits }
    const { key } = this.options
    const options = { ...this.options, protocol, port, stream, limits, caller: () => key.caller() }
    const listener = await TcpListener.open(options)
    this.tcp.push({ protocol, listener })
    const { host, logger } = this.options
    if (stream.readDatagram !== undefined) this.udp.push(await UdpListener.open({ ...options, port: listener.port }))
    logger.info('listening for devices', { protocol, host, port: listener.port })
  }
}
