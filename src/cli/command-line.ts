import { makeForOwnerOnly } from '../engines/file-modes.ts'
import { run } from './run.ts'

makeForOwnerOnly()
process.exitCode = await run(process.argv.slice(2))
// The remains of a failed start would go on calling closed engines.
if (process.exitCode !== 0) process.exit()
