import { connect, type MqttClient } from 'mqtt'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'
import { within } from '../../kit/consumers/retry.ts'
import type { DevicePoints } from './device-points.ts'
import type { FlagKey } from './flag-key.ts'
import { type Message, MqttInbox } from './mqtt-inbox.ts'
import { MQTT_FILTERS, readMessage, senderOf } from './mqtt-topics.ts'
import type { UnknownDevices } from './unknown-devices.ts'

export interface BridgeOptions {
  /** May contain a user and a password. */
  url: string
  /** Stable across starts: the broker keeps messages for it. */
  clientId: string
  points: DevicePoints
  key: Pick<FlagKey, 'caller' | 'problem'>
  /** Decrypts messages. */
  secret: string | undefined
  unknown: UnknownDevices
  clock: Clock
  logger: Logger
  count(result: MessageResult): void
}

/** `stored`: durable, or refused for good. `delayed`: to be retried. */
export type MessageResult = 'stored' | 'delayed'

/** State in `waymark doctor`. */
export interface BridgeState {
  /** Host and port. */
  broker: string
  isConnected: boolean
  /** Unacknowledged messages. */
  waiting: number
  /** Reason why it is not connected, not subscribed, or full. */
  problem?: string
  unknown: readonly string[]
}

const RECONNECT_MS = 2_000
const CONNECT_MS = 10_000
const KEEP_ALIVE_SECONDS = 60
const CLOSE_MS = 2_000
/** No known sender's points need a longer message. */
const MESSAGE_BYTES_MAX = 1024 * 1024

/** Takes points from a broker: a message is acknowledged once durable; until then the broker keeps it. */
export class MqttBridge {
  private readonly options: BridgeOptions
  private readonly client: MqttClient
  private inbox: MqttInbox
  private problem: string | undefined

  constructor(options: BridgeOptions) {
    this.options = options
    this.inbox = this.newInbox()
    this.client = connect(options.url, {
      clientId: options.clientId,
      protocolVersion: 4,
      clean: false,
      resubscribe: false,
      reconnectPeriod: RECONNECT_MS,
      reconnectOnConnackError: true,
      connectTimeout: CONNECT_MS,
      keepalive: KEEP_ALIVE_SECONDS,
      timerVariant: 'native',
    })
    this.follow()
  }

  get broker(): string {
    return brokerOf(this.options.url)
  }

  state(): BridgeState {
    const unknown = this.options.unknown.recent().filter((name) => name.startsWith('mqtt '))
    const { broker, client, inbox } = this
    const problem = this.options.key.problem ?? (inbox.isFull ? FULL : this.problem)
    return { broker, isConnected: client.connected, waiting: inbox.waiting, ...(problem && { problem }), unknown }
  }

  async close(): Promise<void> {
    this.inbox.end()
    const { clock } = this.options
    if (!(await within(clock, CLOSE_MS, this.client.endAsync()))) await this.client.endAsync(true)
  }

  private follow(): void {
    const { client } = this
    const { logger } = this.options
    client.on('connect', () => void this.subscribe())
    client.on('error', (error) => this.fails(error.message || String((error as { code?: unknown }).code ?? error)))
    client.on('close', () => this.begin())
    // The library acknowledges one message before it delivers the next. With QoS 0 it delivers the next at once.
    client.on('packetreceive', (packet) => {
      if (packet.cmd !== 'publish' || packet.qos !== 1) return
      packet.qos = 0
      const { stream } = client
      const { messageId = 0 } = packet
      acknowledgements.set(packet, () => {
        if (client.stream === stream && !stream.destroyed) stream.write(puback(messageId))
      })
    })
    client.handleMessage = (packet, next) => {
      const payload = typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload
      const acknowledge = acknowledgements.get(packet)
      const { topic } = packet
      this.inbox.take({ topic, sender: senderOf(topic), payload, ...(acknowledge && { acknowledge }) }, next)
    }
    logger.info('bridging a broker', { broker: this.broker })
  }

  /** Resets for a new connection: the broker resends the messages of the old one. */
  private begin(): void {
    this.inbox.end()
    this.inbox = this.newInbox()
  }

  private newInbox(): MqttInbox {
    const { clock, logger, count } = this.options
    return new MqttInbox({
      store: async (message) => {
        await this.store(message)
        count('stored')
      },
      clock,
      onFailure: (message, error) => {
        count('delayed')
        const level = error instanceof Failure ? 'debug' : 'error'
        logger[level]('a message has to wait', { topic: message.topic, error: String(error) })
      },
    })
  }

  private async store({ topic, payload }: Message): Promise<void> {
    const { points, unknown, secret } = this.options
    const isTooLong = payload.byteLength > MESSAGE_BYTES_MAX
    const message = readMessage(topic, isTooLong ? NO_JSON : payload, secret)
    if (message === undefined) return
    const caller = await this.options.key.caller()
    const { name } = message
    try {
      if (message.form === 'owntracks') await points.take(caller, { points: message.points, name })
      else await points.takeOwn(caller, { points: message.points, name })
    } catch (error) {
      if (error instanceof Failure && NAMED.includes(error.code)) unknown.note('mqtt', name, error.code)
      throw error
    }
  }

  private async subscribe(): Promise<void> {
    const { broker } = this
    this.options.logger.info('connected to a broker', { broker })
    // One by one: the library does not report which of several was refused.
    const refused: string[] = []
    const { stream } = this.client
    for (const filter of MQTT_FILTERS) {
      const asked = this.client.subscribeAsync(filter, { qos: 1 }).catch(() => void refused.push(filter))
      while (!(await within(this.options.clock, CONNECT_MS, asked))) {
        if (stream.destroyed) return
        if (this.inbox.isHolding) continue // the answer comes behind messages of the last session
        this.fails(`it does not answer the subscription to ${filter}`)
        return void stream.destroy() // the library connects anew
      }
    }
    if (refused.length === 0) this.problem = undefined
    else if (this.client.connected) this.fails(`it does not let this user subscribe to ${refused.join(', ')}`)
  }

  private fails(problem: string): void {
    if (problem === this.problem) return
    this.problem = problem
    this.options.logger.warn('a broker does not serve', { broker: this.broker, problem })
  }
}

const FULL = 'messages of senders without a tracker fill the memory for them: the broker keeps all others too'

const acknowledgements = new WeakMap<object, () => void>()

const NAMED: readonly string[] = ['unknown_tracker', 'forbidden_tracker', 'tracker_limit']

/** Unreadable messages are refused and counted. */
const NO_JSON = Buffer.from('-')

/** MQTT 3.1.1, part 3.4. */
const puback = (messageId: number): Buffer => Buffer.from([0x40, 2, messageId >> 8, messageId & 0xff])

/** Host and port, without the user and password of the URL. */
const brokerOf = (url: string): string => {
  const { protocol, hostname, port } = new URL(url)
  return `${hostname}:${port || (protocol === 'mqtts:' ? 8883 : 1883)}`
}
