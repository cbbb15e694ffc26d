// Bundles tap, as `tap build` has made it, into the module that is `tap` below dist: a test loads one file of it in place of 250.
import { writeFileSync } from 'node:fs'
import { build } from 'esbuild'

const TARGET = 'dist/node_modules/tap'
// tap leaves packages of that name out of the stacks that it shows.
const BUNDLE = 'node_modules/@tapjs/bundle.mjs'

await build({
  entryPoints: ['tap'],
  outfile: `${TARGET}/${BUNDLE}`,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
})
writeFileSync(`${TARGET}/package.json`, JSON.stringify({ main: BUNDLE }))
