import { randomInt } from 'node:crypto'
import type { Test } from 'tap'

/** Numbers in [0, 1) that a seed repeats (mulberry32): tests and benchmarks take chance from nowhere else. */
export const seeded = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

/** The same from another seed at each run. A test that fails prints its seed, and the variable SEED repeats it. */
export const freshlySeeded = (t: Test): (() => number) => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
  t.comment(`SEED=${seed}`)
  // Most reporters leave comments out.
  t.teardown(() => {
    if (!t.passing()) process.stderr.write(`!! "${t.name}" failed with SEED=${seed}\n`)
  })
  return seeded(seed)
}
