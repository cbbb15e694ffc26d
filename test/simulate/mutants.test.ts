import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { MUTANTS } from './mutants.ts'

test('each change to the code finds what it changes, once', (t) => {
  t.ok(MUTANTS.length >= 10)
  for (const { name, file, from } of MUTANTS) {
    const compiled = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    t.equal(compiled.split(from).length, 2, name)
  }
  t.end()
})
