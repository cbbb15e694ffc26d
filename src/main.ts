#!/usr/bin/env node
import { run } from './cli/run.ts'
import { makeForOwnerOnly } from './engines/file-modes.ts'

makeForOwnerOnly()
process.exitCode = await run(process.argv.slice(2))
// What a start that failed had already begun would go on asking engines that are closed.
if (process.exitCode !== 0) process.exit()
