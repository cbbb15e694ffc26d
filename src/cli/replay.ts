import { existsSync } from 'node:fs'
import { ConfigError } from '../config-values.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { callApi, dataOf } from './api-client.ts'
import { CONNECTION_OPTIONS, parseOptions, signIn } from './credentials.ts'
import { replayTrace } from './replay-trace.ts'

const USAGE = `waymark replay <file.csv|file.csv.gz> [options]
Sends a recorded trace (columns trackerId,timestamp,lat,lng and maybe speed,accuracy,heading,altitude) as if it happened now.

  --url       http://127.0.0.1:8080   the service
  --key       none                    an ingest key; without it one with autoCreate is made with the login
  --email, --password                 the login, where no key is given
  --speed     1                       1 is real time, 60 a minute a second, 0 as fast as the service takes it
`

/** `waymark replay`. */
export const replayCommand = async (args: readonly string[]): Promise<number> => {
  const options = { ...CONNECTION_OPTIONS, key: { type: 'string' }, speed: { type: 'string', default: '1' } } as const
  const { values, positionals } = parseOptions(args, options, true)
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const [path] = positionals
  const url = values.url as string
  const speed = Number(values.speed)
  if (path === undefined || !existsSync(path))
    throw new ConfigError(`name a trace file that exists${path === undefined ? '' : `, not ${path}`}`)
  if (!(speed >= 0)) throw new ConfigError('--speed must be a number from 0 on')
  const credential =
    (values.key as string | undefined) ??
    (await makeKey(url, values.email as string | undefined, values.password as string | undefined))
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => abort.abort())
  const { points, rejected } = await replayTrace({
    url,
    credential,
    path,
    speed,
    clock: systemClock,
    signal: abort.signal,
  }).catch((error: unknown) => {
    throw new ConfigError((error as Error).message)
  })
  process.stdout.write(`${points} points acknowledged, ${rejected} rejected\n`)
  return rejected === 0 ? 0 : 1
}

const makeKey = async (url: string, email: string | undefined, password: string | undefined): Promise<string> => {
  const token = await signIn(url, email, password)
  const answer = await callApi(url, 'POST', '/ingest-key', {
    token,
    body: { name: 'waymark replay', autoCreate: true },
  })
  if (answer.status >= 300) throw new ConfigError(`${url} makes no ingest key: ${answer.json?.message}`)
  return (dataOf(answer) as { key: string }).key
}
