import { type Credentials, EventStoreDBClient, isCommandError, ErrorType } from '@eventstore/db-client'
import { Failure } from '../../kernel/errors.ts'

export interface Connection {
  url: string
  /** Of the server. */
  version: string
  client: EventStoreDBClient
  /**
   * Sent with each append. It keeps the client off its batch path, which keeps the pending appends of every client of the
   * process in one map, so that one broken connection rejects another's. An insecure connection ignores it.
   */
  credentials: Credentials
  /** For each call, and for a subscription until it is confirmed. */
  deadlineMs: number
}

/** Oldest servers: before 23.10 nobody says when a subscription is caught up; early 24.10 and 25.0 may lose an event at a checkpoint. */
const SERVERS_MIN = [
  [23, 10, 6],
  [24, 10, 5],
  [25, 0, 1],
] as const

/**
 * Opens a client by an EventStoreDB connection string, and asks the server for its version.
 * @throws Error for a server that is too old or a string that names no user although it uses TLS; Failure engine_down
 */
export const connect = async (url: string, deadlineMs: number): Promise<Connection> => {
  const credentials = credentialsOf(url)
  const client = EventStoreDBClient.connectionString(url)
  try {
    const version = await serverVersion(client)
    assertVersion(version)
    return { url, version, client, credentials, deadlineMs }
  } catch (error) {
    await client.dispose()
    throw error instanceof TypeError || !isOfServer(error) ? error : logDown(error)
  }
}

export const logDown = (cause?: unknown): Failure =>
  new Failure('engine_down', { message: 'The log does not answer; try again later.', retryAfterSeconds: 1, cause })

/** Whether the server may have done what was asked although it did not say so, or may do it when asked again. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof Error) || !isCommandError(error) || PASSING.has(error.type)

/** A failure of the connection or the server, in contrast to a mistake in the configuration. */
const isOfServer = (error: unknown): boolean =>
  error instanceof Error && (isCommandError(error) || 'code' in error || /discover/i.test(error.message))

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

const credentialsOf = (url: string): Credentials => {
  const [, username, password] = /^[a-z+]+:\/\/(?:([^:@/]+):([^@/]+)@)?/.exec(url) ?? []
  if (username !== undefined) return { username: decodeURIComponent(username), password: decodeURIComponent(password) }
  if (!/[?&]tls=false\b/i.test(url))
    throw new Error('--log uses TLS and so needs a user: esdb://user:password@host:2113')
  return { username: 'waymark', password: 'waymark' }
}
