import { binaryEvent, type EventData, jsonEvent, type ResolvedEvent } from '@eventstore/db-client'
import { decodeJson, encodeJson, type EventMetadata, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'

/** Stands in a stream where everything before it was erased. */
export const ERASED = 'streamErased'

export const toEventData = ({ id, type, data, isJson, metadata }: NewEvent): EventData => {
  const given = metadata as { [name: string]: unknown }
  // The client writes JSON itself. What was written by JSON.stringify comes out the same after a turn through it.
  if (isJson) return jsonEvent({ id, type, data: decodeJson<object>(data) as never, metadata: given })
  return binaryEvent({ id, type, data, metadata: given })
}

/** An event as the port answers it, or undefined for what is not one of ours: the server's own streams, and marks. */
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
