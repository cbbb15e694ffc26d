import { ConfigError } from '../config-values.ts'
import { type ApiClient, Unreachable } from './api-client.ts'
import { clientOf, CONNECTION_OPTIONS, CONNECTION_USAGE, parseOptions, signIn } from './credentials.ts'
import { print } from './print.ts'

const USAGE = `waymark watch [options]
Prints positions and events of the live channel, one line of JSON each, until it is interrupted.

${CONNECTION_USAGE}
  --bbox      none                    west,south,east,north in degrees
  --interval  1000                    ms between two messages of positions
`

const RETRY_MS = 2_000

interface FromServer {
  type: string
  cursor?: string
  positions?: object[]
  gone?: string[]
  event?: object
  channel?: string
  message?: string
  code?: string
}

export const watchCommand = async (args: readonly string[]): Promise<number> => {
  const options = {
    ...CONNECTION_OPTIONS,
    bbox: { type: 'string' },
    interval: { type: 'string', default: '1000' },
  } as const
  const { values } = parseOptions(args, options)
  if (values.help) return print(USAGE)
  const bbox = (values.bbox as string | undefined)?.split(',').map(Number)
  if (bbox !== undefined && (bbox.length !== 4 || bbox.some(Number.isNaN)))
    throw new ConfigError('--bbox must be west,south,east,north')
  const client = clientOf(values)
  const subscription = {
    type: 'subscribe',
    id: 'watch',
    bbox,
    channels: ['positions', 'geofence', 'trip'],
    interval: Number(values.interval),
  }
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => abort.abort())
  const login = (): Promise<string> => signIn(client, values)
  let cursor: string | undefined
  for (let token: string | undefined = await login(); ; token = await login().catch(untilReachable)) {
    if (token !== undefined) cursor = await follow(client, token, { ...subscription, since: cursor }, abort.signal)
    if (abort.signal.aborted) return 0
    await new Promise((resume) => setTimeout(resume, RETRY_MS))
  }
}

/** A restarting service comes back. */
const untilReachable = (error: unknown): undefined => {
  if (!(error instanceof Unreachable)) throw error
}

/** Prints until the connection ends; returns the cursor for resuming. @throws ConfigError if the server refuses. */
const follow = (
  client: ApiClient,
  token: string,
  subscription: { since?: string },
  signal: AbortSignal,
): Promise<string | undefined> =>
  new Promise((done, refused) => {
    let cursor = subscription.since
    const socket = client.socket('/live')
    signal.addEventListener('abort', () => socket.close())
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: 'auth', token }))
      socket.send(JSON.stringify(subscription))
    }
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as FromServer
      cursor = message.cursor ?? cursor
      if (message.type === 'error') {
        // Requests that fail because an engine is down are repeated.
        if (message.code !== 'engine_down') refused(new ConfigError(message.message))
        return socket.close()
      }
      for (const line of linesOf(message)) process.stdout.write(`${JSON.stringify(line)}\n`)
    }
    socket.onclose = () => done(cursor)
  })

const linesOf = (message: FromServer): object[] => {
  const positions = (message.positions ?? []).map((position) => ({ position }))
  const gone = (message.gone ?? []).map((trackerId) => ({ gone: trackerId }))
  if (message.type === 'event') return [{ [message.channel as string]: message.event }]
  if (message.type === 'gap') return [message]
  return [...positions, ...gone]
}
