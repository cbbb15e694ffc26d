import { type AppendResult, convertToCommandError } from '@eventstore/db-client'
import sharedPb from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import type { NewEvent } from '../../kernel/event.ts'
import type { ExpectedRevision } from '../event-log.ts'
import { insideOf } from './client-inside.ts'
import type { Connection } from './connection.ts'

type AppendReq = InstanceType<typeof streamsPb.AppendReq>
type AppendResp = InstanceType<typeof streamsPb.AppendResp>

/** The stream is elsewhere, as the server said; what it says of an erased stream is not what the port says. */
export class Refused extends Error {}

/**
 * One append over a call of its own. The client's append writes JSON that is encoded already once more, and takes it to
 * base64 and back; its batches keep the pending appends of every client of the process in one map, so that one broken
 * connection rejects another's.
 * @throws Refused, CommandError, Error of the connection
 */
export const appendOnce = (
  { client, credentials }: Connection,
  stream: string,
  messages: readonly AppendReq[],
  expected: ExpectedRevision,
  deadlineMs: number,
): Promise<AppendResult> => {
  const inside = insideOf(client)
  const call = (streams: Streams): Promise<AppendResult> =>
    new Promise((resolve, reject) => {
      const options = inside.callArguments({ credentials, requiresLeader: true, deadline: deadlineMs })
      const sink = streams.append(...options, (error, answer) => {
        if (error !== null) reject(convertToCommandError(error))
        else if (answer.hasWrongExpectedVersion()) reject(new Refused())
        else resolve(resultOf(answer))
      })
      sink.on('error', reject)
      sink.write(headerOf(stream, expected))
      for (const message of messages) sink.write(message)
      sink.end()
    })
  return inside.execute(streamsGrpc.StreamsClient, 'append', call)
}

/** Encoded once for all repeats. */
export const messageOf = ({ id, type, data, isJson, metadata }: NewEvent): AppendReq => {
  const message = new streamsPb.AppendReq.ProposedMessage()
    .setId(new sharedPb.UUID().setString(id))
    .setData(data)
    .setCustomMetadata(Buffer.from(JSON.stringify(metadata)))
  message.getMetadataMap().set('type', type)
  message.getMetadataMap().set('content-type', isJson ? 'application/json' : 'application/octet-stream')
  return new streamsPb.AppendReq().setProposedMessage(message)
}

const headerOf = (stream: string, expected: ExpectedRevision): AppendReq => {
  const options = new streamsPb.AppendReq.Options()
  options.setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream)))
  if (expected === 'any') options.setAny(new sharedPb.Empty())
  else if (expected === 'none') options.setNoStream(new sharedPb.Empty())
  else options.setRevision(String(expected))
  return new streamsPb.AppendReq().setOptions(options)
}

const resultOf = (answer: AppendResp): AppendResult => {
  const success = answer.getSuccess() as NonNullable<ReturnType<AppendResp['getSuccess']>>
  const position = success.getPosition()
  return {
    success: true,
    nextExpectedRevision: BigInt(success.getCurrentRevision()),
    position: position && {
      commit: BigInt(position.getCommitPosition()),
      prepare: BigInt(position.getPreparePosition()),
    },
  }
}

interface Streams {
  append(
    metadata: object,
    options: object,
    answer: (error: Error | null, response: AppendResp) => void,
  ): { write(message: AppendReq): void; end(): void; on(event: 'error', listener: (error: Error) => void): void }
}
