import { existsSync } from 'node:fs'
import { ConfigError } from '../config-values.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { type ApiClient, dataOf } from './api-client.ts'
import { clientOf, CONNECTION_OPTIONS, CONNECTION_USAGE, parseOptions, signIn } from './credentials.ts'
import { print } from './print.ts'
import { replayTrace } from './replay-trace.ts'

const USAGE = `waymark replay <file.csv|file.csv.gz> [options]
Sends a recorded trace (columns trackerId,timestamp,lat,lng and maybe speed,accuracy,heading,altitude) as if it happened now.
Ends with 1 when the service refused a row, and names the lines.

${CONNECTION_USAGE}, where no key is given
  --key       none                    an ingest key; without it one with autoCreate is made with the login
  --speed     1                       1 is real time, 60 a minute a second, 0 as fast as the service takes it
`

const REJECTED_SHOWN_MAX = 20

export const replayCommand = async (args: readonly string[]): Promise<number> => {
  const options = { ...CONNECTION_OPTIONS, key: { type: 'string' }, speed: { type: 'string', default: '1' } } as const
  const { values, positionals } = parseOptions(args, options, true)
  if (values.help) return print(USAGE)
  const [path] = positionals
  const speed = Number(values.speed)
  if (path === undefined || !existsSync(path))
    throw new ConfigError(`name a trace file that exists${path === undefined ? '' : `, not ${path}`}`)
  if (!(speed >= 0)) throw new ConfigError('--speed must be a number from 0 on')
  const client = clientOf(values)
  const credential = (values.key as string | undefined) ?? (await makeKey(client, values))
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => abort.abort())
  let shown = 0
  const onRejected = (line: number, reason: string): void => {
    if (shown++ < REJECTED_SHOWN_MAX) process.stderr.write(`${path}:${line}: ${reason}\n`)
  }
  const replay = { client, credential, path, speed, clock: systemClock, signal: abort.signal, onRejected }
  const { acknowledged, rejected } = await replayTrace(replay).catch((error: unknown) => {
    throw new ConfigError((error as Error).message)
  })
  if (shown > REJECTED_SHOWN_MAX) process.stderr.write(`and ${shown - REJECTED_SHOWN_MAX} more\n`)
  process.stdout.write(`${acknowledged} points acknowledged, ${rejected} rejected\n`)
  return rejected === 0 ? 0 : 1
}

const makeKey = async (client: ApiClient, login: { [name: string]: unknown }): Promise<string> => {
  const token = await signIn(client, login)
  const body = { name: 'waymark replay', autoCreate: true }
  const answer = await client.call('POST', '/ingest-key', { token, body })
  if (answer.status >= 300) throw new ConfigError(`${client.url} makes no ingest key: ${answer.json?.message}`)
  return (dataOf(answer) as { key: string }).key
}
