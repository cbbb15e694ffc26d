import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { attributesTable, errorsPage, flagsTable, rolesDocument } from '../support/generated-docs.ts'

test('the generated parts of the docs are those of the code (node scripts/write-docs.mjs writes them)', async (t) => {
  t.ok(readFileSync('docs/operations.md', 'utf8').includes(flagsTable()), 'the flags of docs/operations.md')
  t.ok(readFileSync('docs/devices.md', 'utf8').includes(attributesTable()), 'the attributes of docs/devices.md')
  t.equal(readFileSync('docs/errors.md', 'utf8'), errorsPage(), 'docs/errors.md')
  t.equal(readFileSync('docs/roles.md', 'utf8'), rolesDocument(), 'docs/roles.md')
})
