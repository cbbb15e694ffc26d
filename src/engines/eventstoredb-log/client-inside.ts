import type { EventStoreDBClient } from '@eventstore/db-client'

/** Internals of the client, needed for calls that it does not offer. */
export interface ClientInside {
  getGRPCClient(service: unknown, name: string): Promise<unknown>
  handleError(service: unknown, error: Error): Promise<void>
  execute<Service, Answer>(service: unknown, name: string, call: (service: Service) => Promise<Answer>): Promise<Answer>
  createChannel(): Promise<Channel>
  callArguments(options: object, callOptions?: object): [metadata: object, options: object]
}

export const insideOf = (client: EventStoreDBClient): ClientInside => client as unknown as ClientInside

/** A connection of gRPC that is opened on first use, and its credentials and options. */
interface Channel {
  internalChannel: { credentials: object; options: object }
  getTarget(): string
  close(): void
}
type ChannelClass = new (target: string, credentials: object, options: object) => Channel

const CHANNEL_OPTIONS = {
  // Bytes that the server may send before they are read here, of a call and of all calls together. A busy process reads
  // once in a turn of its event loop: with the default of 64 KiB it would get no more than that in a turn.
  'grpc-node.flow_control_window': 256 * 1024,
}

/** Makes the client connect with options of gRPC that it does not pass on. */
export const withChannelOptions = (client: EventStoreDBClient): void => {
  const inside = insideOf(client)
  const { createChannel } = inside
  inside.createChannel = async () => {
    const made = await createChannel()
    const { credentials, options } = made.internalChannel
    made.close()
    return new (made.constructor as ChannelClass)(made.getTarget(), credentials, { ...options, ...CHANNEL_OPTIONS })
  }
}
