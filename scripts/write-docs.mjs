// Writes the generated parts of docs from the code they describe; a test compares both.
import { readFileSync, writeFileSync } from 'node:fs'
import { flagsTable } from '../dist/src/cli/flags-table.js'
import { errorsPage } from '../dist/src/cli/errors-page.js'

const operations = readFileSync('docs/operations.md', 'utf8')
writeFileSync(
  'docs/operations.md',
  operations.replace(/<!-- flags -->[\s\S]*<!-- \/flags -->/, `<!-- flags -->\n${flagsTable()}<!-- /flags -->`),
)
writeFileSync('docs/errors.md', errorsPage())
