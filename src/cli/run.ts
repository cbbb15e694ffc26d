import { help, readConfig, type Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'

const USAGE = `waymark: real-time location streaming and field operations

  waymark start [flags]             starts the service            (waymark start --help)
  waymark demo [flags]              starts it with the demo fleet
  waymark replay <file> [options]   sends a recorded trace as if it happened now   (--help)
  waymark watch [options]           shows positions and events as they happen      (--help)
  waymark rebuild <projection>      builds a read model anew, compares, and swaps
  waymark doctor [options]          checks a data folder and a running service; rotates the token key   (--help)
`

const COVERED_NODES = [20, 22]

/** Runs one command and answers the exit code of the process. */
export const run = async (args: readonly string[]): Promise<number> => {
  const [command = 'help', ...rest] = args
  try {
    return await dispatch(command, rest)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    return 2
  }
}

const dispatch = async (command: string, rest: string[]): Promise<number> => {
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
    case 'rebuild':
      return (await import('./rebuild.ts')).rebuildCommand(rest)
    case 'doctor':
      return (await import('./doctor.ts')).doctorCommand(rest)
    default:
      throw new ConfigError(`There is no command "${command}"; run waymark help`)
  }
}

const start = async (config: Config): Promise<number> => (await import('./start.ts')).startCommand(config)

const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}

/** The server's binaries exist for these Nodes alone; better one sentence than a loader's stack. */
const requireCoveredNode = (): void => {
  const major = Number(process.versions.node.split('.')[0])
  if (COVERED_NODES.includes(major)) return
  throw new ConfigError(
    `Waymark runs on Node ${COVERED_NODES.join(' or ')}, this is ${process.version}; run: nvm install 22`,
  )
}
