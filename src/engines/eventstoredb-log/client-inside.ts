import type { EventStoreDBClient } from '@eventstore/db-client'

/** What the client keeps to itself, and calls that it does not offer need. */
export interface ClientInside {
  getGRPCClient(service: unknown, name: string): Promise<unknown>
  handleError(service: unknown, error: Error): Promise<void>
  execute<Service, Answer>(service: unknown, name: string, call: (service: Service) => Promise<Answer>): Promise<Answer>
  createChannel(): Promise<Channel>
  callArguments(options: object, callOptions?: object): [metadata: object, options: object]
}

export const insideOf = (client: EventStoreDBClient): ClientInside => client as unknown as ClientInside

/** A connection of gRPC that is opened when it is used, and what it was made of. */
interface Channel {
  internalChannel: { credentials: object; options: object }
  getTarget(): string
  close(): void
}
type ChannelClass = new (target: string, credentials: object, options: object) => Channel

const CHANNEL_OPTIONS = {
  // What the server may send before it was read here, of a call and of all calls together. A busy process reads once in a
  // turn of its event loop: with the 64 KiB that are the default it would get no more than that in a turn.
  'grpc-node.flow_control_window': 256 * 1024,
}

/** Has the client connect with options of gRPC that it does not pass on. */
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
