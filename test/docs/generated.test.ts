import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { errorsPage } from '../../src/cli/errors-page.ts'
import { flagsTable } from '../../src/cli/flags-table.ts'

test('the generated parts of the docs are those of the code (node scripts/write-docs.mjs writes them)', async (t) => {
  t.ok(readFileSync('docs/operations.md', 'utf8').includes(flagsTable()), 'the flags of docs/operations.md')
  t.equal(readFileSync('docs/errors.md', 'utf8'), errorsPage(), 'docs/errors.md')
})
