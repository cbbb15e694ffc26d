import {
  AccessDeniedError,
  BACKWARDS,
  type Credentials,
  DeadlineExceededError,
  END,
  ErrorType,
  EventStoreDBClient,
  isCommandError,
  UnavailableError,
} from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { Failure } from '../../kernel/errors.ts'
import { insideOf, withChannelOptions } from './client-inside.ts'
import { readEsdbUrl } from './esdb-url.ts'
import { readToEnd } from './read.ts'
import { Unanswered } from './unanswered.ts'

/** A client of the server, and whether the connection under it is alive. */
export class Connection {
  readonly url: string
  version = ''
  readonly client: EventStoreDBClient
  /** Sent with each call; an insecure connection ignores them. */
  readonly credentials: Credentials
  /** For each call, and for a subscription until it is confirmed. */
  readonly deadlineMs: number
  private heardAtMs = performance.now()

  constructor({ url, client, credentials, deadlineMs }: ConnectionParts) {
    this.url = url
    this.client = client
    this.credentials = credentials
    this.deadlineMs = deadlineMs
  }

  heard(): void {
    this.heardAtMs = performance.now()
  }

  /**
   * Called when a call ended by its deadline. Where nothing at all was received for as long, the connection is given up
   * and the next call opens another one: the client itself waits for ever for a server behind a gateway that takes
   * connections and forwards nothing, since it only pings connections that were answered once.
   */
  async unanswered(): Promise<void> {
    if (performance.now() - this.heardAtMs < this.deadlineMs * SILENT_SHARE) return
    this.heard()
    // While a connection is still being sought there is none to give up.
    const current = await this.connected(0).catch(() => undefined)
    if (current !== undefined) await insideOf(this.client).handleError(current, notNow('nothing is answered'))
  }

  /**
   * Resolves when a node is found. The client searches a cluster for minutes, with every call waiting.
   * @throws Unanswered after so many ms; Error for a cluster of which no node answers
   */
  connected(withinMs: number): Promise<unknown> {
    const found = insideOf(this.client).getGRPCClient(streamsGrpc.StreamsClient, 'streams')
    return within(withinMs, 'no node was found', found)
  }
}

/** @throws Unanswered after `ms` */
export const within = <Answer>(ms: number, otherwise: string, answer: Promise<Answer>): Promise<Answer> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unanswered(`${otherwise} in ${Math.round(ms)} ms`)), ms)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

type ConnectionParts = Pick<Connection, 'url' | 'client' | 'credentials' | 'deadlineMs'>

/** Timers are not exact. */
const SILENT_SHARE = 0.9

/** Oldest servers: before 23.10 "caught up" is not reported; early 24.10 and 25.0 may lose an event at a checkpoint. */
const SERVERS_MIN = [
  [23, 10, 6],
  [24, 10, 5],
  [25, 0, 1],
] as const

/**
 * Opens a client by an EventStoreDB connection string, and asks the server for its version.
 * @throws Error for a server that is too old, a string that cannot be used, or a user whom the server refuses;
 * Failure engine_down
 */
export const connect = async (url: string, deadlineMs: number): Promise<Connection> => {
  const { credentials } = readEsdbUrl(url)
  const client = clientOf(url)
  keepAlive(client)
  withChannelOptions(client)
  try {
    const connection = new Connection({ url, client, credentials, deadlineMs })
    await connection.connected(deadlineMs)
    connection.version = await within(deadlineMs, 'no answer', serverVersion(client))
    assertVersion(connection.version)
    await assertRights(connection)
    return connection
  } catch (error) {
    await client.dispose()
    throw error instanceof TypeError || !isOfServer(error) ? error : logDown(error)
  }
}

/** @throws Error for an unknown option, or a missing file */
const clientOf = (url: string): EventStoreDBClient => {
  try {
    return EventStoreDBClient.connectionString(url)
  } catch (error) {
    const { message } = error as Error
    throw new Error(`--log cannot be used: ${message.replace(/^Failed to load certificate file/, 'tlsCAFile')}`)
  }
}

/** Reads the newest event of all: every subscription by prefixes needs that right. */
const assertRights = async ({ client, credentials, deadlineMs }: Connection): Promise<void> => {
  const { username } = credentials
  const newest = client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, credentials })
  await readToEnd(newest, deadlineMs).catch((error) => {
    if (!(error instanceof AccessDeniedError)) throw error
    throw new Error(
      isUnauthenticated(error)
        ? `--log: the server does not know the user ${username}, or the password is wrong`
        : `--log: the user ${username} may not read $all; docs/eventstoredb.md says which rights it needs`,
    )
  })
}

const UNAUTHENTICATED = 16
const isUnauthenticated = (error: AccessDeniedError): boolean =>
  (error as unknown as { code?: number }).code === UNAUTHENTICATED

/**
 * The client looks for a new connection without awaiting the result: where it finds no node of a cluster, the unhandled
 * rejection would end the process. The next call gets the error.
 */
const keepAlive = (client: EventStoreDBClient): void => {
  const inside = insideOf(client)
  const { handleError } = inside
  inside.handleError = (service, error) => handleError(service, error).catch(() => undefined)
}

export const logDown = (cause?: unknown): Failure =>
  new Failure('engine_down', { message: 'The log does not answer; try again later.', retryAfterSeconds: 1, cause })

/** The server will never accept the request. */
export class Rejected extends Error {}

/** The node cannot handle the request at present. */
export const notNow = (message: string): Error => new UnavailableError({ name: 'Error', message } as never)

/** Whether the server may have handled the request although it did not say so, or may handle it when repeated. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof Rejected) && (!(error instanceof Error) || !isCommandError(error) || PASSING.has(error.type))

/** The call ended by its deadline. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof DeadlineExceededError || error instanceof Unanswered

/** A failure of the connection or the server, in contrast to a mistake in the configuration. */
const isOfServer = (error: unknown): boolean =>
  error instanceof Error &&
  (isCommandError(error) || isUnanswered(error) || 'code' in error || /discover/i.test(error.message))

const PASSING = new Set<ErrorType>([
  ErrorType.TIMEOUT,
  ErrorType.DEADLINE_EXCEEDED,
  ErrorType.UNAVAILABLE,
  ErrorType.CANCELLED,
  ErrorType.UNKNOWN,
  ErrorType.NOT_LEADER,
])

const serverVersion = async (client: EventStoreDBClient): Promise<string> => {
  const { capabilities } = client as unknown as { capabilities: Promise<{ serverVersion: string }> }
  return (await capabilities).serverVersion
}

const assertVersion = (version: string): void => {
  const [major, minor, patch] = version.split('.').map((part) => Number.parseInt(part, 10))
  const least = SERVERS_MIN.find(([one, two]) => one === major && two === minor)
  const isNewer = major > 25 || (major === 25 && minor > 0)
  if (isNewer || (least !== undefined && patch >= least[2])) return
  const known = SERVERS_MIN.map((parts) => parts.join('.')).join(', ')
  throw new Error(
    `--log is an EventStoreDB ${version}, which may lose events of a subscription; Waymark needs ${known} or newer`,
  )
}
