// Rules that the linter does not know. Prints each breach as file:line and ends with 1 when there is one.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const PURE = /^(src\/(features|geo|reactors)|projections)\//
const RULES = [
  { name: 'no barrels: import the file you mean', where: /\.ts$/, pattern: /^\s*export\s+(\*|\{[^}]*\}\s+from)/ },
  {
    name: 'process.env is read in src/config.ts only',
    where: /^(src|projections)\/(?!config\.ts)/,
    pattern: /process\.env/,
  },
  {
    name: 'time and chance are handed in',
    where: PURE,
    pattern: /Date\.now\(|new Date\(\)|Math\.random\(|randomUUID\(|performance\.now\(/,
  },
  { name: 'nothing writes to the console', where: /^(src|projections)\//, pattern: /console\.\w+\(/ },
  {
    name: 'a catch rethrows, fails or records',
    where: /^(src|projections)\//,
    pattern: /catch\s*(\([^)]*\))?\s*\{\s*\}/,
  },
  {
    name: 'chance in tests comes from test/support/random.ts: a seed that is printed',
    where: /^(test|bench)\/(?!support\/(random|free-port)\.ts)/,
    pattern: /Math\.random\(|randomInt\(|seeded\((Date|process)\b|0x6d2b79f5|1_?664_?525|1_?103_?515_?245/,
  },
  {
    name: 'no registry or host of a builder in files',
    where: /./,
    pattern: /"resolved":\s*"https?:\/\/(?!registry\.npmjs\.org)/,
  },
]

const files = execFileSync('git', ['ls-files', 'src', 'projections', 'test', 'bench', 'package-lock.json'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(ts|json)$/.test(file))
let breaches = 0
for (const file of files) {
  const rules = RULES.filter((rule) => rule.where.test(file))
  if (rules.length === 0) continue
  readFileSync(file, 'utf8')
    .split('\n')
    .forEach((line, index) => {
      for (const rule of rules) {
        if (!rule.pattern.test(line)) continue
        breaches++
        process.stdout.write(`${file}:${index + 1}: ${rule.name}\n`)
      }
    })
}
process.stdout.write(`${files.length} files, ${breaches} breaches\n`)
process.exitCode = breaches === 0 && files.length > 0 ? 0 : 1
