import { execFileSync } from 'node:child_process'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { MUTANTS } from './mutants.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
})

/** Runs this process with one of the changes until a run fails. */
const hunt = async (number: number): Promise<void> => {
  const mutant = MUTANTS[number - 1]
  if (mutant === undefined) throw new Error(`--only: expected the number of a change, 1 to ${MUTANTS.length}`)
  register('./mutant-hooks.js', import.meta.url, { data: mutant })
  const { simulate } = await import('./simulate.ts')
  for (let i = 0; i < Number(values.runs); i++) {
    const { faults } = await simulate(Number(values.seed) + i)
    if (faults.length === 0) continue
    process.stdout.write(
      `${number}. ${mutant.name}: found in run ${i + 1}: ${faults[0].split('\n')[0].slice(0, 160)}\n`,
    )
    return
  }
  process.stdout.write(`${number}. ${mutant.name}: not found in ${values.runs} runs\n`)
  process.exitCode = 1
}

/** One change at a time, each in a process of its own; ends with 1 where one is not found. */
const huntAll = (): void => {
  const self = fileURLToPath(import.meta.url)
  for (const number of MUTANTS.keys()) {
    const flags = ['--runs', values.runs, '--seed', values.seed, '--only', String(number + 1)]
    try {
      execFileSync(process.execPath, [self, ...flags], { stdio: 'inherit' })
    } catch {
      process.exitCode = 1
    }
  }
}

if (values.only === undefined) huntAll()
else await hunt(Number(values.only))
