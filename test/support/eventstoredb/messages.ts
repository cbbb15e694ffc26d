import sharedPb from '@eventstore/db-client/generated/shared_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { Metadata, type ServerReadableStream, status } from '@grpc/grpc-js'
import type { StoredEvent } from './records.ts'
import type { AppendOutcome, Expected, NewStoredEvent } from './store.ts'

type AppendReq = InstanceType<typeof streamsPb.AppendReq>

type ProposedMessage =
  | InstanceType<typeof streamsPb.AppendReq.ProposedMessage>
  | InstanceType<typeof streamsPb.BatchAppendReq.ProposedMessage>
type AppendResp = InstanceType<typeof streamsPb.AppendResp>
type ReadResp = InstanceType<typeof streamsPb.ReadResp>
type Uuid = InstanceType<typeof sharedPb.UUID>

const empty = (): InstanceType<typeof sharedPb.Empty> => new sharedPb.Empty()

/** The name in a stream identifier. */
export const nameOf = (identifier: { getStreamName(): Uint8Array | string } | undefined): string => {
  const name = identifier?.getStreamName() ?? ''
  return typeof name === 'string' ? Buffer.from(name, 'base64').toString() : Buffer.from(name).toString()
}

export const identifierOf = (stream: string): InstanceType<typeof sharedPb.StreamIdentifier> =>
  new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream).toString('base64'))

/** What an append expects; the revision has another name in each kind of request. */
export const expectedOf = (
  options: { hasAny(): boolean; hasNoStream(): boolean; hasStreamExists(): boolean },
  revision: string,
): Expected => {
  if (options.hasAny()) return 'any'
  if (options.hasNoStream()) return 'no_stream'
  return options.hasStreamExists() ? 'stream_exists' : BigInt(revision)
}

export const proposedOf = (message: ProposedMessage): NewStoredEvent => ({
  id: uuidOf(message.getId()!),
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
})

export const appendAnswer = (outcome: AppendOutcome, expected: Expected): AppendResp => {
  const answer = new streamsPb.AppendResp()
  if (outcome.kind !== 'wrongVersion') {
    const success = new streamsPb.AppendResp.Success().setCurrentRevision(String(outcome.revision))
    if (outcome.kind === 'repeated') success.setNoPosition(empty())
    else success.setPosition(positionOf(new streamsPb.AppendResp.Position(), outcome.position))
    return answer.setSuccess(success)
  }
  const wrong = new streamsPb.AppendResp.WrongExpectedVersion()
  if (outcome.current < 0) wrong.setCurrentNoStream(empty())
  else wrong.setCurrentRevision(String(outcome.current))
  if (expected === 'any') wrong.setExpectedAny(empty())
  else if (expected === 'no_stream') wrong.setExpectedNoStream(empty())
  else if (expected === 'stream_exists') wrong.setExpectedStreamExists(empty())
  else wrong.setExpectedRevision(String(expected))
  return answer.setWrongExpectedVersion(wrong)
}

export const eventAnswer = (event: StoredEvent): ReadResp => {
  const recorded = new streamsPb.ReadResp.ReadEvent.RecordedEvent()
    .setId(new sharedPb.UUID().setString(event.id))
    .setStreamIdentifier(identifierOf(event.stream))
    .setStreamRevision(String(event.revision))
    .setData(event.data)
    .setCustomMetadata(event.metadata)
  positionOf(recorded, event.position)
  recorded.getMetadataMap().set('type', event.type)
  recorded.getMetadataMap().set('content-type', event.contentType)
  recorded.getMetadataMap().set('created', String(event.created))
  const read = new streamsPb.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(String(event.position))
  return new streamsPb.ReadResp().setEvent(read)
}

export const confirmation = (id: string): ReadResp =>
  new streamsPb.ReadResp().setConfirmation(new streamsPb.ReadResp.SubscriptionConfirmation().setSubscriptionId(id))

export const checkpointAnswer = (position: number): ReadResp =>
  new streamsPb.ReadResp().setCheckpoint(positionOf(new streamsPb.ReadResp.Checkpoint(), position))

export const caughtUp = (): ReadResp => new streamsPb.ReadResp().setCaughtUp(new streamsPb.ReadResp.CaughtUp())

export const streamNotFound = (stream: string): ReadResp =>
  new streamsPb.ReadResp().setStreamNotFound(
    new streamsPb.ReadResp.StreamNotFound().setStreamIdentifier(identifierOf(stream)),
  )

export const streamDeleted = (stream: string): { code: number; details: string; metadata: Metadata } => {
  const metadata = new Metadata()
  metadata.set('exception', 'stream-deleted')
  metadata.set('stream-name', stream)
  return { code: status.FAILED_PRECONDITION, details: `Event stream '${stream}' is deleted.`, metadata }
}

export const positionOf = <
  Message extends { setCommitPosition(value: string): unknown; setPreparePosition(value: string): unknown },
>(
  message: Message,
  position: number,
): Message => {
  message.setCommitPosition(String(position))
  message.setPreparePosition(String(position))
  return message
}

export const uuidOf = (uuid: Uuid): string => {
  if (uuid.hasString()) return uuid.getString()
  const structured = uuid.getStructured()!
  const half = (bits: string): string => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, '0')
  const hex = half(structured.getMostSignificantBits()) + half(structured.getLeastSignificantBits())
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** By events: the end of an asynchronous iteration makes errors and their stacks, which costs more than the append. */
export const requestsOf = (call: ServerReadableStream<AppendReq, AppendResp>): Promise<AppendReq[]> =>
  new Promise((resolve) => {
    const requests: AppendReq[] = []
    call.on('data', (request: AppendReq) => requests.push(request))
    call.once('end', () => resolve(requests))
    call.once('error', () => resolve([])) // the client left
  })
