import { randomUUID } from 'node:crypto'
import { EventStoreDBClient } from '@eventstore/db-client'
import sharedPb from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import timestampPb from 'google-protobuf/google/protobuf/timestamp_pb.js'
import { test } from 'tap'
import { insideOf } from '../../src/engines/eventstoredb-log/client-inside.ts'
import { readEsdbUrl } from '../../src/engines/eventstoredb-log/esdb-url.ts'
import { uuidOf } from '../support/eventstoredb/messages.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { until } from '../support/service.ts'

// What Waymark takes for granted of `BatchAppend`: the double of the tests and a real server pass the same checks.
const REAL = process.env.WAYMARK_TEST_EVENTSTOREDB
const NAME = REAL === undefined ? 'eventstoredb (server of the tests)' : 'eventstoredb (real server)'
const APPEND_BYTES_MAX = 1024 * 1024

type Answer = InstanceType<typeof streamsPb.BatchAppendResp>
type Message = InstanceType<typeof streamsPb.BatchAppendReq.ProposedMessage>

const newStream = (): string => `conformance${randomUUID().replaceAll('-', '')}-1`

const messages = (count: number, bytes = 10): Message[] =>
  Array.from({ length: count }, () => {
    const id = new sharedPb.UUID().setString(randomUUID())
    const message = new streamsPb.BatchAppendReq.ProposedMessage().setId(id).setData(new Uint8Array(bytes))
    message.getMetadataMap().set('type', 'done').set('content-type', 'application/octet-stream')
    return message
  })

interface Piece {
  /** Left out, it goes on with what has begun under the id. */
  expected?: bigint | 'any' | 'none'
  stream?: string
  deadlineMs?: number
  isFinal?: boolean
}

/** One call, and what was answered on it so far, by correlation id. */
class BatchCall {
  readonly answers = new Map<string, Answer>()
  error: Error | undefined
  private readonly sink

  constructor(client: EventStoreDBClient, streams: InstanceType<typeof streamsGrpc.StreamsClient>) {
    const { credentials } = readEsdbUrl(REAL ?? 'esdb://127.0.0.1?tls=false')
    const given = insideOf(client).callArguments({ credentials, requiresLeader: true }, { deadline: Infinity })
    this.sink = streams.batchAppend(...(given as unknown as []))
    this.sink.on('data', (answer: Answer) => this.answers.set(uuidOf(answer.getCorrelationId()!), answer))
    this.sink.on('error', (error: Error) => (this.error = error))
  }

  send(given: Message[], piece: Piece, id = randomUUID() as string): string {
    const request = new streamsPb.BatchAppendReq()
      .setCorrelationId(new sharedPb.UUID().setString(id))
      .setProposedMessagesList(given)
      .setIsFinal(piece.isFinal ?? true)
    if (piece.expected !== undefined) request.setOptions(optionsOf(piece))
    this.sink.write(request)
    return id
  }

  async answerTo(given: Message[], piece: Piece): Promise<Answer> {
    const id = this.send(given, piece)
    await until('an answer', () => this.answers.has(id))
    return this.answers.get(id)!
  }

  close(): void {
    this.sink.cancel()
  }
}

const optionsOf = ({ expected, stream, deadlineMs }: Piece) => {
  const options = new streamsPb.BatchAppendReq.Options()
  if (stream !== undefined)
    options.setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream)))
  if (expected === 'any') options.setAny(new sharedPb.Empty())
  else if (expected === 'none') options.setNoStream(new sharedPb.Empty())
  else options.setStreamPosition(String(expected))
  if (deadlineMs !== undefined) options.setDeadline(timestampPb.Timestamp.fromDate(new Date(Date.now() + deadlineMs)))
  return options
}

/** What was answered: a revision, or what is wrong. */
const saidOf = (answer: Answer): string => {
  const success = answer.getSuccess()
  if (success !== undefined) return success.getCurrentRevision()
  return answer.getError()?.getDetails()?.getTypeName().replace('event_store.client.', '') ?? ''
}

test(`${NAME}: appends of many streams share a call, and what is wrong with one is said of it alone`, async (t) => {
  const server = REAL === undefined ? await openEventstoredbServer() : undefined
  const client = EventStoreDBClient.connectionString(REAL ?? server!.url)
  const streams = await insideOf(client).getGRPCClient(streamsGrpc.StreamsClient, 'streams')
  const call = new BatchCall(client, streams as InstanceType<typeof streamsGrpc.StreamsClient>)
  t.teardown(async () => {
    call.close()
    await client.dispose()
    await server?.close()
  })
  const [stream, other, dead] = [newStream(), newStream(), newStream()]
  const three = messages(3)

  const written = await call.answerTo(three, { stream, expected: 'none' })
  t.equal(saidOf(written), '2')
  t.equal(Buffer.from(written.getStreamIdentifier()!.getStreamName_asU8()).toString(), stream)
  const read = async (name: string): Promise<bigint[]> => {
    const positions: bigint[] = []
    for await (const { event } of client.readStream(name)) positions.push(event!.position!.commit)
    return positions
  }
  const position = (await read(stream)).at(-1)
  t.equal(written.getSuccess()?.getPosition()?.getCommitPosition(), String(position), 'of its last event')

  for (const expected of ['none', 'any'] as const) {
    const repeated = await call.answerTo(three, { stream, expected })
    t.equal(saidOf(repeated), '2', 'known by its ids')
    const stood = repeated.getSuccess()?.getPosition()?.getCommitPosition()
    t.ok(stood === undefined || stood === String(position), 'where it stands, if it is told at all')
  }
  const mixed = await call.answerTo([three[0], ...messages(1)], { stream, expected: 'any' })
  t.equal(saidOf(mixed), 'WrongExpectedVersion', 'a known event and a new one')

  const wrongOf = async (name: string, expected: bigint) => {
    const details = (await call.answerTo(messages(1), { stream: name, expected })).getError()!.getDetails()!
    const type = 'event_store.client.WrongExpectedVersion'
    return details.unpack(sharedPb.WrongExpectedVersion.deserializeBinary, type)!
  }
  const behind = await wrongOf(stream, 7n)
  t.same([behind.getCurrentStreamRevision(), behind.getExpectedStreamPosition()], ['2', '7'])
  t.ok((await wrongOf(other, 0n)).hasCurrentNoStream())

  const large = await call.answerTo(messages(2, APPEND_BYTES_MAX / 2 + 1), { stream, expected: 'any' })
  t.equal(saidOf(large), 'MaximumAppendSizeExceeded')
  await call.answerTo(messages(1), { stream: dead, expected: 'none' })
  await client.tombstoneStream(dead, { credentials: readEsdbUrl(REAL ?? 'esdb://127.0.0.1?tls=false').credentials })
  t.equal(saidOf(await call.answerTo(messages(1), { stream: dead, expected: 'any' })), 'StreamDeleted')
  t.equal(saidOf(await call.answerTo(messages(1), { stream, expected: 'any', deadlineMs: -60_000 })), 'Timeout')
  t.equal(saidOf(await call.answerTo(messages(1), { expected: 'any' })), 'BadRequest', 'without a stream')

  const ids = [messages(2), messages(3)].map((given, index) => {
    const id = call.send(given, { stream: index === 0 ? stream : other, expected: 'any', isFinal: false })
    call.send(messages(1), {}) // goes on with what never began, and is answered by nobody
    return id
  })
  const [never] = [call.send(messages(1), { stream, expected: 'any', deadlineMs: 300, isFinal: false })]
  t.equal(saidOf(await call.answerTo(messages(1), { stream, expected: 2n })), '3', 'before those that are not whole')
  for (const id of ids) call.send(messages(1), {}, id)
  await until('those in pieces, and the one that never ends', () => [...ids, never].every((id) => call.answers.has(id)))
  t.same(
    [...ids, never].map((id) => saidOf(call.answers.get(id)!)),
    ['6', '3', 'Timeout'],
  )

  const many = Array.from({ length: 300 }, () => call.send(messages(1), { stream: newStream(), expected: 'none' }))
  await until('all that are in flight together', () => many.every((id) => call.answers.has(id)))
  t.ok(many.every((id) => saidOf(call.answers.get(id)!) === '0'))
  t.equal((await read(stream)).length, 7)
  t.equal((await read(other)).length, 4)
  t.equal(call.error, undefined)
})
