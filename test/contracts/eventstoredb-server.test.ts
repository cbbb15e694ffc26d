import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:http2'
import type { Readable } from 'node:stream'
import {
  ANY,
  type AppendExpectedRevision,
  type AppendToStreamOptions,
  BACKWARDS,
  binaryEvent,
  END,
  EventStoreDBClient,
  FORWARDS,
  NO_STREAM,
  type ResolvedEvent,
  START,
  STREAM_EXISTS,
  StreamNotFoundError,
  streamNameFilter,
  type WrongExpectedVersionError,
} from '@eventstore/db-client'
import operationsGrpc from '@eventstore/db-client/generated/operations_grpc_pb.js'
import operationsPb from '@eventstore/db-client/generated/operations_pb.js'
import { type Test, test } from 'tap'
import { readEsdbUrl } from '../../src/engines/eventstoredb-log/esdb-url.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'
import { CONNECTION_WINDOW, STREAM_WINDOW } from '../support/eventstoredb/windows.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'

// What Waymark takes for granted of a server: the double of the tests and a real one pass the same checks.
const REAL = process.env.WAYMARK_TEST_EVENTSTOREDB
const NAME = REAL === undefined ? 'eventstoredb (server of the tests)' : 'eventstoredb (real server)'
/** Passing them keeps the client off its batch path, as the engine does. */
const { credentials } = readEsdbUrl(REAL ?? 'esdb://127.0.0.1?tls=false')
const APPEND_BYTES_MAX = 1024 * 1024
/** Appends of 10 events of 8 kB: more than a server keeps for a slow subscriber. */
const SLOW_ROUNDS = 80

const serves = (promise: string, check: (t: Test, client: EventStoreDBClient) => Promise<void>): void =>
  void test(`${NAME}: ${promise}`, { timeout: 900_000 }, async (t) => {
    const server = REAL === undefined ? await openEventstoredbServer({ path: `${folderOf(t)}/log` }) : undefined
    const client = EventStoreDBClient.connectionString(REAL ?? server!.url)
    t.teardown(async () => {
      await client.dispose()
      await server?.close()
    })
    await check(t, client)
  })

const newStream = (): string => `conformance${randomUUID().replaceAll('-', '')}-1`

const events = (count: number, bytes = 10, metadata = {}) =>
  Array.from({ length: count }, () => binaryEvent({ type: 'done', data: new Uint8Array(bytes), metadata }))

const append = (
  client: EventStoreDBClient,
  stream: string,
  given: ReturnType<typeof events>,
  expectedRevision: AppendExpectedRevision = ANY,
  options: AppendToStreamOptions = {},
) => client.appendToStream(stream, given, { credentials, expectedRevision, ...options })

/** Of a failure: what it is about. */
const typed = (type: string) => ({ type }) as unknown as Error

const read = async (
  client: EventStoreDBClient,
  stream: string,
  fromRevision: bigint | typeof START | typeof END = START,
  maxCount = 1_000,
  direction: typeof FORWARDS | typeof BACKWARDS = FORWARDS,
): Promise<number[]> => {
  const revisions: number[] = []
  for await (const { event } of client.readStream(stream, { fromRevision, maxCount, direction }))
    revisions.push(Number(event?.revision))
  return revisions
}

/** Whether a stream was found. */
const isThere = [
  () => true,
  (error: unknown) => {
    if (error instanceof StreamNotFoundError) return false
    throw error
  },
] as const

const positionsOf = async (client: EventStoreDBClient, stream: string): Promise<bigint[]> => {
  const positions: bigint[] = []
  for await (const { event } of client.readStream(stream)) positions.push(event!.position!.commit)
  return positions
}

/** What a subscription has said so far. */
const heard = (readable: unknown) => {
  const subscription = readable as Readable
  const said = { events: [] as ResolvedEvent[], caughtUp: 0, error: undefined as Error | undefined }
  subscription.on('data', (resolved: ResolvedEvent) => said.events.push(resolved))
  subscription.on('caughtUp', () => said.caughtUp++)
  subscription.on('error', (error) => (said.error = error))
  return said
}

serves('an expected version that is not there is refused with the one that is', async (t, client) => {
  const stream = newStream()
  const refused = async (expected: AppendExpectedRevision, actual: bigint | typeof NO_STREAM) => {
    const error = await append(client, stream, events(1), expected).catch((reason) => reason)
    t.equal(error.type, 'wrong-expected-version', String(expected))
    const { streamName, expectedVersion, actualVersion } = error as WrongExpectedVersionError
    t.same([streamName, expectedVersion, actualVersion], [stream, expected, actual], String(expected))
  }
  await refused(0n, NO_STREAM)
  await refused(STREAM_EXISTS, NO_STREAM)
  const { nextExpectedRevision, position } = await append(client, stream, events(3), NO_STREAM)
  t.equal(nextExpectedRevision, 2n)
  t.equal(position?.commit, (await positionsOf(client, stream)).at(-1), 'the position of its last event')
  for (const expected of [NO_STREAM, 0n, 1n, 3n, 99n] as const) await refused(expected, 2n)
  t.equal((await append(client, stream, events(1), STREAM_EXISTS)).nextExpectedRevision, 3n)
  t.equal((await append(client, stream, events(1), 3n)).nextExpectedRevision, 4n)
})

serves('a repeated append is known by its ids', async (t, client) => {
  const stream = newStream()
  const first = events(3)
  await append(client, stream, first, NO_STREAM)
  const second = events(2)
  await append(client, stream, second, 2n)
  for (const [given, expected, revision] of [
    [first, NO_STREAM, 2n],
    [second, 2n, 4n],
    [first, ANY, 2n],
    [second, STREAM_EXISTS, 4n],
  ] as const) {
    const { nextExpectedRevision, position } = await append(client, stream, [...given], expected)
    t.equal(nextExpectedRevision, revision)
    const { [Number(revision)]: stood } = await positionsOf(client, stream)
    t.ok(position === undefined || position.commit === stood, 'where it stands, if it is told at all')
  }
  const refused = (given: ReturnType<typeof events>, expected: AppendExpectedRevision, what: string) =>
    t.rejects(append(client, stream, given, expected), typed('wrong-expected-version'), what)
  await refused([...second, ...events(1)], 2n, 'known events and one more')
  await refused([second[1], second[0]], 2n, 'in another order')
  await refused([first[0], ...events(1)], ANY, 'a known event and a new one, at any revision')
  await refused(second, 1n, 'at another revision')
  t.same(await read(client, stream), [0, 1, 2, 3, 4])
})

serves('an append takes 1 MiB of data, and nothing of one that is larger', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(1, APPEND_BYTES_MAX - 200))
  // Some versions count metadata and types, too: the engine stays below with all of them.
  const error = await append(client, stream, events(2, APPEND_BYTES_MAX / 2 + 1)).catch((reason) => reason)
  t.equal(error.type, 'maximum-append-size-exceeded')
  t.equal(error.maxAppendSize, APPEND_BYTES_MAX)
  t.same(await read(client, stream), [0])
})

serves('reads page both ways, and a stream that is not there is not found', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(70))
  const revisions = (from: number, to: number): number[] =>
    Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => from + Math.sign(to - from) * index)
  t.same(await read(client, stream, START), revisions(0, 69), 'over the pages of 32')
  t.same(await read(client, stream, 30n, 40), revisions(30, 69))
  t.same(await read(client, stream, 70n), [])
  t.same(await read(client, stream, 1_000n), [])
  t.same(await read(client, stream, END, 3, BACKWARDS), [69, 68, 67])
  t.same(await read(client, stream, 1n, 10, BACKWARDS), [1, 0])
  t.same(await read(client, stream, 1_000n, 2, BACKWARDS), [69, 68])
  for (const direction of [FORWARDS, BACKWARDS] as const)
    await t.rejects(
      read(client, newStream(), direction === FORWARDS ? START : END, 1, direction),
      typed('stream-not-found'),
    )
})

serves('what is before $tb is hidden from its stream, and stays in $all', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(10))
  const [first] = await positionsOf(client, stream)
  await client.setStreamMetadata(stream, { truncateBefore: 7 }, { credentials })
  t.same(await read(client, stream), [7, 8, 9])
  t.same(await read(client, stream, 2n, 2), [7, 8])
  t.same(await read(client, stream, 5n, 2, BACKWARDS), [])
  t.equal((await client.getStreamMetadata(stream, { credentials })).metadata?.truncateBefore, 7)
  const all: string[] = []
  for await (const { event } of client.readAll({ fromPosition: { commit: first, prepare: first } }))
    if (event?.streamId === stream) all.push(String(event.revision))
  t.same(all, ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
  const said = heard(client.subscribeToStream(stream))
  await until('caught up', () => said.caughtUp === 1)
  t.same(
    said.events.map(({ event }) => Number(event?.revision)),
    [7, 8, 9],
  )
  const metadata = { credentials, expectedRevision: NO_STREAM } as const
  await t.rejects(client.setStreamMetadata(stream, { truncateBefore: 8 }, metadata), typed('wrong-expected-version'))
})

serves('a deleted stream is not found, and goes on above what it had', async (t, client) => {
  const stream = newStream()
  const first = events(5)
  await append(client, stream, first, NO_STREAM)
  await client.deleteStream(stream, { credentials })
  await t.rejects(read(client, stream), typed('stream-not-found'))
  await t.rejects(append(client, stream, events(1), 2n), typed('wrong-expected-version'))
  t.equal((await append(client, stream, events(2), NO_STREAM)).nextExpectedRevision, 6n)
  // A server answers the append some moments before it shows the stream again.
  const isShown = (): Promise<boolean> => read(client, stream).then(...isThere)
  await until('the stream to be shown again', isShown)
  t.same(await read(client, stream), [5, 6])
  t.same(await read(client, stream, END, 10, BACKWARDS), [6, 5])
  t.equal((await append(client, stream, events(1), 6n)).nextExpectedRevision, 7n)
})

serves('a tombstone is for ever', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(2))
  await client.tombstoneStream(stream, { credentials })
  await t.rejects(read(client, stream), typed('stream-deleted'))
  await t.rejects(append(client, stream, events(1), NO_STREAM), typed('stream-deleted'))
})

serves('a position inside a record is refused', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(3, 100))
  const [, second] = await positionsOf(client, stream)
  const inside = { commit: second + 1n, prepare: second + 1n }
  const reading = (async () => {
    for await (const _ of client.readAll({ fromPosition: inside, maxCount: 1 })) t.fail('an event')
  })()
  await t.rejects(reading, { message: /Unexpected InvalidPosition|Unexpected UnexpectedErr|UNKNOWN/i })
  const said = heard(client.subscribeToAll({ fromPosition: inside, filter: streamNameFilter({ prefixes: [stream] }) }))
  await until('a subscription from there to end', () => said.error !== undefined)
  t.same(said.events, [])
})

serves(
  'a filtered subscription brings what is wanted, says when it is caught up, and how far it has come',
  async (t, client) => {
    const [wanted, foreign] = [newStream(), newStream()]
    const { position } = await append(client, wanted, events(1))
    for (let round = 0; round < 4; round++) await append(client, foreign, events(100))
    await append(client, wanted, events(2))
    const checkpoints: bigint[] = []
    const said = heard(
      client.subscribeToAll({
        fromPosition: position!,
        filter: streamNameFilter({
          prefixes: [wanted],
          checkpointInterval: 2,
          checkpointReached: (_, { commit }) => void checkpoints.push(commit),
        }),
      }),
    )
    await until('caught up', () => said.caughtUp === 1)
    const revisions = (): number[] => said.events.map(({ event }) => Number(event?.revision))
    t.same(revisions(), [1, 2], 'the event at the position itself is not among them')
    const reached = checkpoints.length
    t.ok(reached >= 3, `${reached} checkpoints while it caught up over 400 foreign events`)
    for (let round = 0; round < 4; round++) await append(client, foreign, events(100))
    await until('checkpoints while it is live', () => checkpoints.length >= reached + 3)
    await append(client, wanted, events(1))
    await until('the live event', () => said.events.length === 3)
    t.same(revisions(), [1, 2, 3])
    t.ok(
      checkpoints.every((checkpoint, index) => index === 0 || checkpoint >= checkpoints[index - 1]),
      'they never go back, though one may come twice',
    )
    const from = checkpoints.at(-2)!
    const resumed = heard(
      client.subscribeToAll({
        fromPosition: { commit: from, prepare: from },
        filter: streamNameFilter({ prefixes: [wanted] }),
      }),
    )
    await until('caught up', () => resumed.caughtUp === 1)
    t.same(
      resumed.events.map(({ event }) => Number(event?.revision)),
      [3],
      'a checkpoint is a position from which to go on',
    )
  },
)

serves('a stream without events is never caught up, and its first event comes all the same', async (t, client) => {
  const stream = newStream()
  const said = heard(client.subscribeToStream(stream))
  const other = heard(client.subscribeToStream(stream))
  await append(client, newStream(), events(1))
  t.equal(said.caughtUp, 0)
  await append(client, stream, events(1))
  await until('the first event', () => said.events.length === 1 && other.events.length === 1)
})

serves('a scavenge takes hidden events out of $all, and their positions stay good', async (t, client) => {
  const [stream, filler] = [newStream(), newStream()]
  await append(client, stream, events(4))
  const positions = await positionsOf(client, stream)
  await client.setStreamMetadata(stream, { truncateBefore: 3 }, { credentials })
  // A server leaves the chunk alone that it writes to.
  if (REAL !== undefined) for (let i = 0; i < 20; i++) await append(client, filler, events(1, 900_000))
  await scavenge(client)
  const from = async (position: bigint): Promise<string> => {
    let first = ''
    const fromPosition = { commit: position, prepare: position }
    for await (const { event } of client.readAll({ fromPosition, maxCount: 1 }))
      first = `${event?.streamId}@${event?.revision}`
    return first
  }
  const isGone = async (): Promise<boolean> => (await from(positions[1])) === `${stream}@3`
  if (REAL !== undefined) await until('the scavenge to come to it', isGone, 120_000).catch(() => undefined)
  if (!(await isGone())) return t.comment('the server has larger chunks than this test fills: nothing was scavenged')
  const at = { commit: positions[1], prepare: positions[1] }
  const said = heard(client.subscribeToAll({ fromPosition: at, filter: streamNameFilter({ prefixes: [stream] }) }))
  await until('caught up', () => said.caughtUp === 1)
  t.same(said.events, [], 'a subscription from there passes the next event, which nobody has seen')
})

serves('a subscriber that does not read is dropped, and others are not', async (t, client) => {
  const stream = newStream()
  await append(client, stream, events(1))
  const quick = heard(client.subscribeToStream(stream, { fromRevision: END }))
  const slow = EventStoreDBClient.connectionString(await urlOf(client))
  t.teardown(() => slow.dispose())
  const subscription = slow.subscribeToStream(stream, { fromRevision: END }) as unknown as Readable
  let error: Error | undefined
  subscription.on('error', (reason) => (error = reason))
  await once(subscription, 'caughtUp')
  await until('the quick one to be live', () => quick.caughtUp === 1)
  for (let round = 1; round <= SLOW_ROUNDS; round++) {
    await append(client, stream, events(10, 8_000))
    await until('the quick one', () => quick.events.length === round * 10)
  }
  let got = 0
  subscription.on('data', () => got++)
  await until('the slow one to be dropped', () => error !== undefined)
  t.ok(got < SLOW_ROUNDS * 10, `it got ${got} of ${SLOW_ROUNDS * 10}`)
  t.equal(quick.error, undefined)
})

serves('the server tells its version and its members', async (t, client) => {
  const { capabilities } = client as unknown as { capabilities: Promise<{ serverVersion: string }> }
  t.match((await capabilities).serverVersion, /^\d+\.\d+\.\d+/)
  const discovered = EventStoreDBClient.connectionString(await urlOf(client, 'esdb+discover'))
  t.teardown(() => discovered.dispose())
  const stream = newStream()
  await append(discovered, stream, events(1))
  t.same(await read(client, stream), [0])
})

serves('takes large events without a pause for each 64 KiB', async (t, client) => {
  const url = await urlOf(client, /[?&]tls=false/.test(REAL ?? '?tls=false') ? 'http' : 'https')
  const session = connect(new URL(url).origin, { rejectUnauthorized: false })
  await once(session, 'remoteSettings')
  t.equal(session.remoteSettings.initialWindowSize, STREAM_WINDOW)
  await until('the window of all calls together', () => session.state.remoteWindowSize === CONNECTION_WINDOW)
  session.destroy()
})

/** Of the node that a client talks to, with all else as it was given. */
const urlOf = async (client: EventStoreDBClient, scheme = 'esdb'): Promise<string> => {
  const node = await (client as unknown as { resolveUri(): Promise<string> }).resolveUri()
  return (REAL ?? 'esdb://node?tls=false').replace(
    /^[a-z+]+:\/\/([^@/]*@)?[^/?]+/,
    (_, user = '') => `${scheme}://${user}${node}`,
  )
}

const scavenge = (client: EventStoreDBClient): Promise<unknown> => {
  const inside = client as unknown as {
    execute(service: unknown, name: string, call: (operations: never) => Promise<unknown>): Promise<unknown>
    callArguments(options: object): [object, object]
  }
  const options = new operationsPb.StartScavengeReq.Options().setThreadCount(1).setStartFromChunk(0)
  const request = new operationsPb.StartScavengeReq().setOptions(options)
  return inside.execute(
    operationsGrpc.OperationsClient,
    'startScavenge',
    (operations: { startScavenge(...given: unknown[]): void }) =>
      new Promise((resolve, reject) => {
        const answer = (error: unknown, response: unknown) => (error === null ? resolve(response) : reject(error))
        operations.startScavenge(request, ...inside.callArguments({ credentials }), answer)
      }),
  )
}
