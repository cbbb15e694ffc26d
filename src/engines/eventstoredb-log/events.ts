import type streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { decodeJson, type EventMetadata, type RecordedEvent } from '../../kernel/event.ts'

/** Marks the place in a stream before which everything was erased. */
export const ERASED = 'streamErased'

/** An event in an answer of the server, in its generated class. */
type ReadEvent = InstanceType<typeof streamsPb.ReadResp.ReadEvent>

/** The part of an answer that this folder reads by itself. */
export interface ReadAnswer {
  getEvent(): ReadEvent | undefined
}

/** An event of any stream, its data as the server sent it: the client would parse JSON, to be written as text again. */
export const recordedOf = (read: ReadEvent | undefined): RecordedEvent | undefined => {
  const event = read?.getEvent()
  if (event === undefined) return undefined // a link to an event that is gone
  const about = event.getMetadataMap()
  return {
    id: event.getId()!.getString(),
    type: about.get('type') ?? '',
    data: event.getData_asU8(),
    isJson: about.get('content-type') === 'application/json',
    metadata: metadataOf(event.getCustomMetadata_asU8()),
    stream: Buffer.from(event.getStreamIdentifier()!.getStreamName_asU8()).toString(),
    revision: Number(event.getStreamRevision()),
    position: Number(event.getCommitPosition()),
    // Units of 100 ns since the epoch, more digits than a number holds.
    loggedAt: Number(about.get('created')?.slice(0, -4) ?? 0),
  }
}

/** What another client wrote there may be no JSON. */
const metadataOf = (bytes: Uint8Array): EventMetadata => {
  if (bytes.byteLength === 0) return {}
  try {
    return decodeJson<EventMetadata | null>(bytes) ?? {}
  } catch {
    return {}
  }
}

/** Whether the port answers an event: not the server's own streams, nor marks. */
export const isOurs = ({ type, stream }: RecordedEvent): boolean => type !== ERASED && !stream.startsWith('$')
