import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { flagsOf, openServers } from '../support/stand-ins.ts'
import { onFreshService, option, textOption } from './fresh-service.ts'
import { bothLoads, hundredths, report } from './measure-load.ts'

/**
 * Drives the whole service on its embedded engines and then on servers, by the same load in the same run, and prints
 * the ratio. Usage: node dist/bench/load/run-engines.js [--seconds 8] [--fences 1000] [--warmup 10] [--log-url esdb://…
 * --tables-url redis://… --history-url http://…]; without URLs, the stand-ins of the tests. Real servers must be empty:
 * the started service makes an installation of its own on them.
 */
const measureMs = option('seconds', 8) * 1000
const fences = option('fences', 1_000)
const warmupMs = option('warmup', 10) * 1000

type Rows = { [name: string]: unknown }

const drive = async (rows: Rows, flags: readonly string[]): Promise<Map<string, number>> => {
  const found = new Map<string, number>()
  await onFreshService(
    rows,
    fences,
    async (prepared) => {
      for (const [name, plan] of await bothLoads(prepared, measureMs, warmupMs)) {
        const { acknowledgedPointsPerSecond, storedPointsPerSecond } = await report(rows, name, prepared.service, plan)
        found.set(`${name}, acknowledged`, acknowledgedPointsPerSecond)
        found.set(`${name}, stored`, storedPointsPerSecond)
      }
    },
    flags,
  )
  return found
}

const folder = mkdtempSync(join(tmpdir(), 'waymark-engines-'))
const servers = await openServers(folder, {
  log: textOption('log-url'),
  tables: textOption('tables-url'),
  history: textOption('history-url'),
})
try {
  const embedded: Rows = {}
  const served: Rows = {}
  process.stdout.write(`${cpus().length} × ${cpus()[0].model}, Node ${process.version}\nembedded\n`)
  const own = await drive(embedded, [])
  process.stdout.write('on servers\n')
  const other = await drive(served, flagsOf(servers.urls))
  const ratios = Object.fromEntries(
    [...own].map(([name, value]) => [name, hundredths((other.get(name) as number) / value)]),
  )
  process.stdout.write(`${JSON.stringify({ embedded, served, ratios }, undefined, 2)}\n`)
} finally {
  await servers.close()
  rmSync(folder, { recursive: true, force: true })
}
