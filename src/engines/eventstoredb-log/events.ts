import type { ResolvedEvent } from '@eventstore/db-client'
import { encodeJson, type EventMetadata, type RecordedEvent } from '../../kernel/event.ts'

/** Marks the place in a stream before which everything was erased. */
export const ERASED = 'streamErased'

/** An event as the port answers it, or undefined for a foreign one: the server's own streams, and marks. */
export const fromResolved = ({ event }: ResolvedEvent): RecordedEvent | undefined => {
  if (event === undefined || event.type === ERASED || event.position === undefined || event.streamId.startsWith('$'))
    return undefined
  return {
    id: event.id,
    type: event.type,
    data: event.isJson ? encodeJson(event.data) : (event.data as Uint8Array),
    isJson: event.isJson,
    metadata: (event.metadata ?? {}) as EventMetadata,
    stream: event.streamId,
    revision: Number(event.revision),
    position: Number(event.position.commit),
    loggedAt: event.created.getTime(),
  }
}
