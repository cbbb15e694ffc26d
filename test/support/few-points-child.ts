import { startCommand } from '../../src/cli/start.ts'
import { readConfig } from '../../src/config.ts'

/** The service with one bound lower: back-tests over more than five points are jobs. Begins with `start`, as the command does. */
process.exitCode = await startCommand(readConfig(process.argv.slice(3)), { backtestPointsMax: 5 })
