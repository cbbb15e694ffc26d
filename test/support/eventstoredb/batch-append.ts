import sharedPb from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { type Metadata, type ServerDuplexStream, status } from '@grpc/grpc-js'
import anyPb from 'google-protobuf/google/protobuf/any_pb.js'
import { expectedOf, identifierOf, nameOf, positionOf, proposedOf, uuidOf } from './messages.ts'
import { type AppendOutcome, type Expected, type NewStoredEvent, type StreamStore, sizeOnDisk } from './store.ts'

type BatchAppendReq = InstanceType<typeof streamsPb.BatchAppendReq>
type BatchAppendResp = InstanceType<typeof streamsPb.BatchAppendResp>
type Success = InstanceType<typeof streamsPb.BatchAppendResp.Success>
type Status = InstanceType<typeof statusPb.Status>
export type BatchAppendCall = ServerDuplexStream<BatchAppendReq, BatchAppendResp>

/** What ends a call. */
export interface CallFailure {
  code: number
  details: string
  metadata?: Metadata
}

/** What appends over shared calls hold at the server. */
export interface AppendCounts {
  /** That are open. */
  calls: number
  begun: number
  /** Appends that are not answered; of calls that have ended, too. */
  owed: number
}

/** The server as far as appends are concerned. */
interface AppendingServer {
  readonly store: StreamStore
  readonly appends: AppendCounts
  readonly fault: string | undefined
  struck: number
  disturbed(call: { metadata: Metadata }): Promise<'silent' | CallFailure | undefined>
}

/** The server's own `WriteTimeoutMs`. */
const WRITE_TIMEOUT_MS = 2_000
const LATE_MS = 150
/** Another node leads, or the user is not known: the whole call ends. */
const ENDING: ReadonlySet<number> = new Set([status.NOT_FOUND, status.UNAUTHENTICATED])
export const APPEND_BYTES_MAX = 1024 * 1024

/**
 * `Streams.BatchAppend`: appends of many streams over one call, each in one piece or several of which the last says so,
 * and each answered under its correlation id. What is wrong with one is a status in its answer; that another node leads
 * ends the call with all that is in flight.
 */
export const serveBatchAppend = (server: AppendingServer, call: BatchAppendCall): void => {
  const appends = new BatchAppends(server, call)
  call.on('data', (request: BatchAppendReq) => void appends.take(request))
  call.once('end', () => appends.close())
  call.once('error', () => undefined) // the client left
  server.appends.calls++
  server.appends.begun++
  call.once('close', () => server.appends.calls--)
}

interface Append {
  stream: string
  expected: Expected
  events: NewStoredEvent[]
  bytes: number
  late: NodeJS.Timeout
}

class BatchAppends {
  private readonly server: AppendingServer
  private readonly call: BatchAppendCall
  /** Those whose last piece has not come. */
  private readonly begun = new Map<string, Append>()
  private owed = 0
  private isClosing = false

  constructor(server: AppendingServer, call: BatchAppendCall) {
    this.server = server
    this.call = call
  }

  async take(request: BatchAppendReq): Promise<void> {
    const id = uuidOf(request.getCorrelationId()!)
    const wrong = request.hasOptions() ? this.begin(id, request) : undefined
    if (wrong !== undefined) return this.answer(request, wrong)
    const append = this.begun.get(id)
    if (append === undefined) return
    for (const message of request.getProposedMessagesList()) {
      const event = proposedOf(message)
      append.events.push(event)
      append.bytes += sizeOnDisk(event)
    }
    if (append.bytes > APPEND_BYTES_MAX) return this.answer(request, tooLarge(), this.taken(id))
    if (request.getIsFinal()) await this.carryOut(request, this.taken(id) as Append)
  }

  /** The server ends a call that its client has ended with the next answer, whatever is owed besides. */
  close(): void {
    this.isClosing = true
  }

  /** What is wrong with the options of an append, if anything is. */
  private begin(id: string, request: BatchAppendReq): Status | undefined {
    const options = request.getOptions()!
    if (!options.hasStreamIdentifier()) return badRequest('Required field StreamIdentifier not set.')
    const deadline = options.getDeadline()?.toDate().getTime() ?? Number.POSITIVE_INFINITY
    const timeoutMs = Math.min(deadline - Date.now(), WRITE_TIMEOUT_MS)
    if (timeoutMs <= 0) return timeout()
    if (this.begun.has(id)) return undefined
    const stream = nameOf(options.getStreamIdentifier())
    const late = setTimeout(() => this.answer(request, timeout(), this.taken(id)), timeoutMs).unref()
    const expected = expectedOf(options, options.getStreamPosition())
    this.begun.set(id, { stream, expected, events: [], bytes: 0, late })
    return undefined
  }

  private taken(id: string): Append | undefined {
    const append = this.begun.get(id)
    clearTimeout(append?.late)
    this.begun.delete(id)
    return append
  }

  private async carryOut(request: BatchAppendReq, append: Append): Promise<void> {
    this.owed++
    const { appends } = this.server
    appends.owed++
    const outcome = await this.outcomeOf(append)
    if (outcome === undefined) return
    appends.owed--
    this.answer(request, outcome, append)
  }

  /** Undefined where nothing is answered. */
  private async outcomeOf(append: Append): Promise<Status | Success | undefined> {
    const { server, call } = this
    const failure = await server.disturbed(call)
    if (failure === 'silent' || call.cancelled) return undefined
    if (failure !== undefined && ENDING.has(failure.code)) return void call.emit('error', failure)
    if (failure !== undefined) return statusOf(failure)
    if (append.events.some(({ type }) => type === '')) return badRequest('no type')
    if (server.fault === 'lateCommit' || server.fault === 'lostAnswer') server.struck++
    if (server.fault === 'lateCommit') {
      setTimeout(() => this.write(append), LATE_MS)
      return timeout()
    }
    const outcome = this.write(append)
    return server.fault === 'lostAnswer' ? undefined : outcome
  }

  private write({ stream, events, expected }: Append): Status | Success {
    const { store } = this.server
    if (store.isTombstoned(stream)) return streamDeleted(stream)
    const outcome = store.append(stream, events, expected)
    return outcome.kind === 'wrongVersion' ? wrongVersion(outcome.current, expected) : successOf(outcome)
  }

  private answer(request: BatchAppendReq, outcome: Status | Success, append?: Append): void {
    if (this.call.cancelled) return
    const stream = append?.stream ?? nameOf(request.getOptions()?.getStreamIdentifier())
    const answer = new streamsPb.BatchAppendResp()
      .setCorrelationId(request.getCorrelationId())
      .setStreamIdentifier(identifierOf(stream))
    this.call.write(outcome instanceof statusPb.Status ? answer.setError(outcome) : answer.setSuccess(outcome))
    if (--this.owed >= 0 && this.isClosing) this.call.end()
  }
}

const successOf = (outcome: Exclude<AppendOutcome, { kind: 'wrongVersion' }>): Success => {
  const success = new streamsPb.BatchAppendResp.Success().setCurrentRevision(String(outcome.revision))
  return outcome.kind === 'repeated'
    ? success.setNoPosition(new sharedPb.Empty())
    : success.setPosition(positionOf(new sharedPb.AllStreamPosition(), outcome.position))
}

const statusWith = (
  code: number,
  message: string,
  name: string,
  details: { serializeBinary(): Uint8Array } = new sharedPb.Empty(),
): Status => {
  const packed = new anyPb.Any()
  packed.pack(details.serializeBinary(), name)
  return new statusPb.Status().setCode(code).setMessage(message).setDetails(packed)
}

const wrongVersion = (current: number, expected: Expected): Status => {
  const wrong = new sharedPb.WrongExpectedVersion()
  const empty = new sharedPb.Empty()
  if (current < 0) wrong.setCurrentNoStream(empty)
  else wrong.setCurrentStreamRevision(String(current))
  if (expected === 'any') wrong.setExpectedAny(empty)
  else if (expected === 'no_stream') wrong.setExpectedNoStream(empty)
  else if (expected === 'stream_exists') wrong.setExpectedStreamExists(empty)
  else wrong.setExpectedStreamPosition(String(expected))
  return statusWith(status.ALREADY_EXISTS, 'WrongExpectedVersion', 'event_store.client.WrongExpectedVersion', wrong)
}

const streamDeleted = (stream: string): Status => {
  const details = new sharedPb.StreamDeleted().setStreamIdentifier(identifierOf(stream))
  return statusWith(status.NOT_FOUND, 'StreamDeleted', 'event_store.client.StreamDeleted', details)
}

const timeout = (): Status => statusWith(status.DEADLINE_EXCEEDED, 'Timeout', 'event_store.client.Timeout')

const tooLarge = (): Status => {
  const details = new sharedPb.MaximumAppendSizeExceeded().setMaxappendsize(APPEND_BYTES_MAX)
  const name = 'MaximumAppendSizeExceeded'
  return statusWith(status.INVALID_ARGUMENT, name, `event_store.client.${name}`, details)
}

const badRequest = (message: string): Status => {
  const details = new sharedPb.BadRequest().setMessage(message)
  return statusWith(status.INVALID_ARGUMENT, 'BadRequest', 'event_store.client.BadRequest', details)
}

/** What would end an append that has a call of its own. */
const statusOf = ({ code, details }: CallFailure): Status =>
  code === status.PERMISSION_DENIED
    ? statusWith(code, 'AccessDenied', 'event_store.client.AccessDenied')
    : statusWith(status.OK, details, 'google.protobuf.Empty')
