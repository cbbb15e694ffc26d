import { parseArgs } from 'node:util'
import { simulate } from './simulate.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    verbose: { type: 'boolean' },
  },
})
const first = Number(values.seed)
const runs = Number(values.runs)
if (!Number.isInteger(first) || !Number.isInteger(runs) || runs < 1)
  throw new Error('usage: npm run simulate -- --seed N --runs M, both whole numbers')

let steps = 0
let points = 0
let failed = 0
for (let seed = first; seed < first + runs; seed++) {
  const outcome = await simulate(seed)
  steps += outcome.steps
  points += outcome.points
  if (values.verbose === true) process.stdout.write(`${outcome.lines.join('\n')}\n`)
  if (values.verbose === true || outcome.faults.length > 0)
    process.stdout.write(
      `seed ${seed} (${outcome.fingerprint}, ${outcome.steps} steps, ${outcome.points} points, ${outcome.transitions} transitions): ${outcome.faults.join('\n  ') || 'all invariants hold'}\n`,
    )
  if (outcome.faults.length > 0) {
    failed++
    break
  }
}
process.stdout.write(
  failed === 0
    ? `${runs} runs from seed ${first}: all invariants hold (${steps} steps, ${points} points)\n`
    : `failed; repeat it with: npm run simulate -- --seed ${first} --runs ${runs}\n`,
)
process.exitCode = failed === 0 ? 0 : 1
