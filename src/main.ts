#!/usr/bin/env node
import { fileURLToPath, pathToFileURL } from 'node:url'
import { currentBundle } from './bundle.ts'

const bundle = currentBundle(fileURLToPath(new URL('..', import.meta.url)))
if (bundle !== undefined) await import(pathToFileURL(bundle).href)
else await import('./cli/command-line.ts')
