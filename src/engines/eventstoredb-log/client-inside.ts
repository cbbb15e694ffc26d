import type { EventStoreDBClient } from '@eventstore/db-client'

/** What the client keeps to itself, and calls that it does not offer need. */
export interface ClientInside {
  getGRPCClient(service: unknown, name: string): Promise<unknown>
  handleError(service: unknown, error: Error): Promise<void>
  execute<Service, Answer>(service: unknown, name: string, call: (service: Service) => Promise<Answer>): Promise<Answer>
  callArguments(options: object, callOptions?: object): [metadata: object, options: object]
}

export const insideOf = (client: EventStoreDBClient): ClientInside => client as unknown as ClientInside
