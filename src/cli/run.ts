import { debuglog } from 'node:util'
import { help } from '../config-flags.ts'
import { readConfig, type Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { print } from './print.ts'
import { sentenceOf } from './sentence.ts'
import { stopSignal } from './stop-signal.ts'
import { version } from '../kit/operations/version.ts'

const USAGE = `waymark: real-time location streaming and field operations

  waymark start [flags]             starts the service            (waymark start --help)
  waymark demo [flags]              starts it with the demo fleet
  waymark replay <file> [options]   sends a recorded trace as if it happened now   (--help)
  waymark watch [options]           shows positions and events as they happen      (--help)
  waymark connect --app <app>       connects a phone: prints the QR code of its app (--help)
  waymark rebuild <projection>      rebuilds a read model, compares, and swaps     (--help)
  waymark doctor [options]          checks a data folder and a running service; rotates the token key   (--help)
  waymark backup <folder>           copies the embedded engines and keys, also of a running service   (--help)
  waymark restore <backup>          makes a data folder out of a backup            (--help)
  waymark migrate --from … --to …   copies an installation to other engines        (--help)
  waymark reset-password <e-mail>   prints a link for somebody who is locked out   (--help)
  waymark --version                 the version of this package
`

/** Origin of an error; printed with `NODE_DEBUG=waymark`. */
const details = debuglog('waymark')

export const run = async (args: readonly string[]): Promise<number> => {
  const [command = 'help', ...rest] = args
  try {
    return await dispatch(command, rest)
  } catch (error) {
    details('%o', error)
    process.stderr.write(`${sentenceOf(error)}\n`)
    return error instanceof ConfigError ? 2 : 1
  }
}

const dispatch = async (command: string, rest: string[]): Promise<number> => {
  if (command === 'version' || command === '--version' || command === '-v') return print(`${version()}\n`)
  if (command === 'help' && rest.length > 0) return dispatch(rest[0], ['--help'])
  if (command === 'help' || command === '--help' || command === '-h') return print(USAGE)
  if ((command === 'start' || command === 'demo') && rest.includes('--help'))
    return print(`waymark ${command} [flags]\n\n${help()}`)
  requireCoveredNode()
  switch (command) {
    case 'start':
      return start(readConfig(rest))
    case 'demo':
      return start(readConfig([...rest, '--demo']))
    case 'replay':
      return (await import('./replay.ts')).replayCommand(rest)
    case 'watch':
      return (await import('./watch.ts')).watchCommand(rest)
    case 'connect':
      return (await import('./connect.ts')).connectCommand(rest)
    case 'rebuild':
      return (await import('./rebuild.ts')).rebuildCommand(rest)
    case 'doctor':
      return (await import('./doctor/doctor.ts')).doctorCommand(rest)
    case 'backup':
      return (await import('./backup.ts')).backupCommand(rest)
    case 'restore':
      return (await import('./backup.ts')).restoreCommand(rest)
    case 'migrate':
      return (await import('./migrate.ts')).migrateCommand(rest)
    case 'reset-password':
      return (await import('./reset-password.ts')).resetPasswordCommand(rest)
    default:
      throw new ConfigError(`There is no command "${command}"; run waymark help`)
  }
}

/** Listens for signals before loading the engines' libraries, which takes a second. */
const start = async (config: Config): Promise<number> => {
  const stop = stopSignal()
  return (await import('./start.ts')).startCommand(config, undefined, stop)
}

/** Node versions of the server's binaries, with glibc (docs/decisions/0016-packages-of-the-server-library.md). */
const COVERED_NODES: { [major: string]: number } = { 20: 2.27, 22: 2.27, 24: 2.38 }
/** First minor version of Node 20 that every library supports. */
const NODE_20_MINOR_MIN = 19

/** Prints a sentence instead of a loader's stack. */
const requireCoveredNode = (): void => {
  const [major, minor] = process.versions.node.split('.')
  const glibcMin = COVERED_NODES[major]
  if (glibcMin === undefined || (major === '20' && Number(minor) < NODE_20_MINOR_MIN))
    throw new ConfigError(
      `Waymark runs on Node 20 (from 20.${NODE_20_MINOR_MIN} on), 22 or 24, this is ${process.versions.node}; run: nvm install 22`,
    )
  const glibc = major === '24' ? glibcVersion() : undefined
  if (glibc !== undefined && Number(glibc) < glibcMin)
    throw new ConfigError(
      `On Node ${major} Waymark needs glibc ${glibcMin} or later (Debian 13, Ubuntu 24.04), this system has ${glibc}; run: nvm install 22`,
    )
}

/** Undefined if there is none (macOS). */
const glibcVersion = (): string | undefined => {
  Object.assign(process.report, { excludeNetwork: true }) // or it looks up the names of all connections
  return (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime
}
