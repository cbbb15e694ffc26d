import { existsSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { parseOptions } from './credentials.ts'
import { askControl } from './control-socket.ts'
import { rotateKey } from './rotate-key.ts'

const USAGE = `waymark doctor [--data ./data] [--forget <consumer>] [--rotate-token-key [--keys <file>] [--token-ttl 24h]]
Checks this machine and a data folder, and shows how far each consumer of a running service is.
--forget lets go of a consumer that no longer exists and holds the location log back.
--rotate-token-key signs tokens with a new key from now on; those of the key before stay valid until they end, at the latest
after --token-ttl, and then it leaves the keyring. Where no service runs, give --keys and --token-ttl as the service has them.
`

const OPTIONS = {
  data: { type: 'string' },
  forget: { type: 'string' },
  'rotate-token-key': { type: 'boolean', default: false },
  keys: { type: 'string' },
  'token-ttl': { type: 'string' },
  help: { type: 'boolean', default: false },
} as const
/** Those that are flags of the service. */
const FLAGS = ['data', 'keys', 'token-ttl'] as const

const FREE_BYTES_MIN = 1024 ** 3

interface Finding {
  ok: boolean
  what: string
}

/** `waymark doctor`: prints one line for each finding; ends with 1 when something is wrong. */
export const doctorCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, OPTIONS)
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const config = readConfig(
    FLAGS.flatMap((name) => (values[name] === undefined ? [] : [`--${name}`, values[name] as string])),
  )
  const { dataPath, keysPath } = config
  if (values.forget !== undefined) return forget(dataPath, values.forget as string)
  if (values['rotate-token-key']) return rotateKey(config)
  const findings = machineFindings(dataPath)
  if (existsSync(dataPath)) findings.push(keyringFinding(keysPath), ...(await serviceFindings(dataPath)))
  for (const { ok, what } of findings) process.stdout.write(`${ok ? 'ok  ' : 'BAD '} ${what}\n`)
  return findings.every(({ ok }) => ok) ? 0 : 1
}

const machineFindings = (dataPath: string): Finding[] => {
  if (!existsSync(dataPath))
    return [
      {
        ok: false,
        what: `data folder ${dataPath} does not exist: name another with --data, or start the service to make it`,
      },
    ]
  const { bavail, bsize } = statfsSync(dataPath)
  const free = bavail * bsize
  return [
    { ok: true, what: `node ${process.version} on ${process.platform} ${process.arch}` },
    { ok: free > FREE_BYTES_MIN, what: `${(free / 1024 ** 3).toFixed(1)} GiB free at ${dataPath}` },
    ...['log', 'tables', 'history'].map((folder) => ({
      ok: existsSync(join(dataPath, folder)),
      what: `${folder} is there`,
    })),
  ]
}

const keyringFinding = (keysPath: string): Finding => {
  if (!existsSync(keysPath))
    return {
      ok: false,
      what: `keyring ${keysPath} does not exist: tokens and secrets of this folder cannot be read without it`,
    }
  const isPrivate = (statSync(keysPath).mode & 0o077) === 0
  return {
    ok: isPrivate,
    what: `keyring ${keysPath} is ${isPrivate ? 'readable by its owner alone' : 'readable by others: chmod 600'}`,
  }
}

const serviceFindings = async (dataPath: string): Promise<Finding[]> => {
  const answer = await askControl(dataPath, { command: 'status' })
  if (answer === undefined) return [{ ok: true, what: 'no service runs on this folder' }]
  if (!answer.ok) return [{ ok: false, what: `the service does not say how it is: ${answer.error}` }]
  const { consumers, engines } = answer.report as {
    consumers: { consumer: string; events: number; seconds: number }[]
    engines: { [engine: string]: boolean }
  }
  return [
    ...Object.entries(engines).map(([engine, up]) => ({
      ok: up,
      what: `engine ${engine} ${up ? 'answers' : 'does not answer'}`,
    })),
    ...consumers.map(({ consumer, events, seconds }) => ({
      ok: seconds < 60,
      what: `${consumer} is ${events} events and ${seconds.toFixed(1)} s behind`,
    })),
  ]
}

const forget = async (dataPath: string, name: string): Promise<number> => {
  const answer = await askControl(dataPath, { command: 'forget', name })
  if (answer === undefined) throw new ConfigError(`no service runs on ${dataPath}; start it first`)
  if (!answer.ok) throw new ConfigError(answer.error ?? 'it cannot be forgotten')
  process.stdout.write(`${name} no longer holds the location log back\n`)
  return 0
}
