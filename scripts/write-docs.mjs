// Writes the generated parts of docs from the code they describe; a test compares both.
import { readFileSync, writeFileSync } from 'node:fs'
import { attributesTable, errorsPage, flagsTable, rolesDocument } from '../dist/test/support/generated-docs.js'

const operations = readFileSync('docs/operations.md', 'utf8')
writeFileSync(
  'docs/operations.md',
  operations.replace(/<!-- flags -->[\s\S]*<!-- \/flags -->/, `<!-- flags -->\n${flagsTable()}<!-- /flags -->`),
)
const devices = readFileSync('docs/devices.md', 'utf8')
writeFileSync(
  'docs/devices.md',
  devices.replace(
    /<!-- attributes -->[\s\S]*<!-- \/attributes -->/,
    `<!-- attributes -->\n${attributesTable()}<!-- /attributes -->`,
  ),
)
writeFileSync('docs/errors.md', errorsPage())
writeFileSync('docs/roles.md', rolesDocument())
