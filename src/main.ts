#!/usr/bin/env node
import { run } from './cli/run.ts'
import { makeForOwnerOnly } from './engines/file-modes.ts'

makeForOwnerOnly()
process.exitCode = await run(process.argv.slice(2))
// The remains of a failed start would go on calling closed engines.
if (process.exitCode !== 0) process.exit()
