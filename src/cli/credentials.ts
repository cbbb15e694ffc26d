import { parseArgs } from 'node:util'
import { ConfigError } from '../config-values.ts'
import { callApi } from './api-client.ts'

/** Options that every command which talks to a running service takes. */
export const CONNECTION_OPTIONS = {
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  email: { type: 'string' },
  password: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

type OptionTable = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>

/** @throws ConfigError for an unknown option. */
export const parseOptions = (args: readonly string[], options: OptionTable, allowPositionals = false) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals, strict: true })
  } catch (error) {
    throw new ConfigError((error as Error).message.split('\n')[0])
  }
}

/** Nothing answers at the url. */
export class Unreachable extends ConfigError {}

/** Signs in; the credentials come from the options or from WAYMARK_EMAIL and WAYMARK_PASSWORD (handed in). */
export const signIn = async (url: string, email: string | undefined, password: string | undefined): Promise<string> => {
  if (email === undefined || password === undefined) throw new ConfigError('give --email and --password')
  const answer = await callApi(url, 'POST', '/auth/login', { body: { email, password } }).catch(() => {
    throw new Unreachable(`no service answers at ${url}`)
  })
  if (answer.status !== 200) throw new ConfigError(`${url} refused the login: ${answer.json?.message}`)
  return answer.json.token as string
}
