import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/* Runs each bench in a process of its own, one after the other; `npm run bench -- matcher` runs only those so named. */

const wanted = process.argv.slice(2)
const benches = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.bench.js') && (wanted.length === 0 || wanted.some((name) => file.startsWith(name))))
  .sort()

for (const file of benches) {
  console.log(`\n== ${file.replace('.bench.js', '')}`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, file)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
if (benches.length === 0) {
  console.error(`no bench is called ${wanted.join(' or ')}`)
  process.exitCode = 1
}
