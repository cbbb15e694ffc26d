import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError } from '../config-values.ts'
import { ApiClient, Unreachable } from './api-client.ts'

export const CONNECTION_OPTIONS = {
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  ca: { type: 'string' },
  email: { type: 'string' },
  password: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

export const CONNECTION_USAGE = `  --url       http://127.0.0.1:8080   the service
  --ca        none                    file (PEM) of a certificate to trust, where the service has one of its own
  --email, --password                 the login`

type OptionTable = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>

/** @throws ConfigError for an unknown option. */
export const parseOptions = (args: readonly string[], options: OptionTable, allowPositionals = false) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals, strict: true })
  } catch (error) {
    throw new ConfigError((error as Error).message.split('\n')[0])
  }
}

type Values = { [name: string]: unknown }

export const clientOf = ({ url, ca }: Values): ApiClient => {
  if (ca !== undefined && !existsSync(ca as string))
    throw new ConfigError(`--ca must name a file; ${ca} does not exist`)
  return new ApiClient(url as string, ca === undefined ? undefined : { ca: readFileSync(ca as string, 'utf8') })
}

/** Signs in with `--email` and `--password`; returns the token. */
export const signIn = async (client: ApiClient, { email, password }: Values): Promise<string> => {
  if (email === undefined || password === undefined) throw new ConfigError('give --email and --password')
  const answer = await client.call('POST', '/auth/login', { body: { email, password } })
  if (answer.status === 503) throw new Unreachable(`${client.url} cannot serve now: ${answer.json?.message}`)
  if (answer.status !== 200) throw new ConfigError(`${client.url} refused the login: ${answer.json?.message}`)
  if (answer.json.token === undefined)
    throw new ConfigError(`${email} has a second factor; sign in as somebody who has none`)
  return answer.json.token as string
}
