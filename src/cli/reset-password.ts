import { readConfig } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { askRunning } from './control-socket.ts'
import { parseOptions } from './credentials.ts'
import { print } from './print.ts'

const USAGE = `waymark reset-password <e-mail> [--second-factor] [--data ./data]
Prints a link that sets a new password for that person, for whoever is locked out and gets no mail: an owner, say, whose
mail server is not set up yet. It works once, within an hour, and ends all their sessions. The service must be running.
  --second-factor   the link takes their second factor off too, for whoever has lost it
`

const OPTIONS = {
  data: { type: 'string' },
  'second-factor': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

/** `waymark reset-password`: asks the service that runs on the data folder. */
export const resetPasswordCommand = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseOptions(args, OPTIONS, true)
  if (values.help) return print(USAGE)
  const [email, ...more] = positionals
  if (email === undefined || more.length > 0)
    throw new ConfigError('name one e-mail; run waymark reset-password --help')
  const { dataPath } = readConfig(values.data === undefined ? [] : ['--data', values.data as string])
  const endsFactor = values['second-factor'] as boolean
  const report = await askRunning(dataPath, { command: 'resetPassword', name: email, endsFactor })
  const { url, expiresAt } = report as { url: string; expiresAt: string }
  return print(`${url}\nIt works once, until ${expiresAt}; anyone who has it can sign in as ${email}.\n`)
}
