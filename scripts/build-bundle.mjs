// Bundles the compiled service into dist/bundle, which dist/src/main.js runs: a start loads 50 files of ours in place of 900.
// Packages stay outside. docs/decisions/0026-a-start-loads-a-bundle.md gives the reasons. Does nothing when its inputs are unchanged.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { currentBundle } from '../dist/src/bundle.js'

const COMPILED = 'dist'
const TARGET = 'dist/bundle'
const COMMAND_LINE = 'dist/src/cli/command-line.js'
const SELF = 'scripts/build-bundle.mjs'
/** A worker is started from a file beside its module; all other files are found from where the module was compiled to. */
const WORKER = /new Worker\(new URL\('\.\/([\w-]+\.js)', import\.meta\.url\)/g
const WORKER_OR_URL = new RegExp(`${WORKER.source}|import\\.meta\\.url`, 'g')
const UNKNOWN = /new Worker\(|import\.meta(?!\.url)|new URL\('\.\/[^']*', import\.meta/

const REQUIRED = 'required'
const REQUIRE = `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);`

const posix = (path) => path.replaceAll(sep, '/')

/** Compiled modules. The sources name them, since the compiler leaves behind what it made of deleted ones. */
const compiledFiles = () =>
  ['src', 'projections']
    .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => posix(join(folder, name))))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts') && !file.startsWith('src/console/'))
    .map((file) => `${COMPILED}/${file.replace(/\.ts$/, '.js')}`)

/** Time of change and size, as src/bundle.ts compares them. */
const stateOf = (file) => {
  const { mtimeMs, size } = statSync(file)
  return [mtimeMs, size]
}

const beside = (file, name) => posix(join(dirname(file), name))

const workersOf = (file) => [...readFileSync(file, 'utf8').matchAll(WORKER)].map(([, name]) => beside(file, name))

/** The bundle is one folder, so that the path from any part of it to another one is the same: names say where a module lies. */
const nameOf = (file) => posix(relative('dist/src', file)).replace(/\.js$/, '').replaceAll('/', '-')

/** @throws Error at what the bundle would look for at the wrong place */
const relocated = (file, text) => {
  if (UNKNOWN.test(text.replace(WORKER, '')))
    throw new Error(`${file}: say new Worker(new URL('./….js', import.meta.url)), or import.meta.url of other files`)
  return text.replace(WORKER_OR_URL, (_, worker) =>
    worker === undefined
      ? `new URL('../${posix(relative(COMPILED, file))}', import.meta.url).href`
      : `new Worker(new URL('./${nameOf(beside(file, worker))}.js', import.meta.url)`,
  )
}

const places = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/, namespace: 'file' }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      return { contents: relocated(posix(relative('.', path)), text), loader: 'js' }
    })
  },
}

const { resolve } = createRequire(import.meta.url)

/** What the nearest package.json above a file says. */
const typeOf = (file) => {
  const description = join(dirname(file), 'package.json')
  return existsSync(description) ? JSON.parse(readFileSync(description, 'utf8')).type : typeOf(dirname(file))
}

/** Whether a require loads the same file of a package as an import, and that is CommonJS. */
const isCommonJs = (name) => {
  const file = fileURLToPath(import.meta.resolve(name))
  return file.endsWith('.js') && typeOf(file) !== 'module' && resolve(name) === file
}

/** An import of CommonJS parses each file a second time, for the names it exports, and takes Node twice as long. */
const required = {
  name: 'required',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind === 'entry-point') return undefined
      const isRequired = kind === 'import-statement' && !path.startsWith('node:') && isCommonJs(path)
      return isRequired ? { path, namespace: REQUIRED } : { path, external: true }
    })
    onLoad({ filter: /.*/, namespace: REQUIRED }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)})`,
    }))
  },
}

const bundle = async (folder) => {
  // Before anything is read: what changes meanwhile makes the bundle old.
  const files = compiledFiles()
  const states = new Map([...files, SELF].map((file) => [file, stateOf(file)]))
  const entries = [COMMAND_LINE, ...files.flatMap(workersOf)]
  const { metafile } = await build({
    entryPoints: Object.fromEntries(entries.map((file) => [nameOf(file), file])),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
    banner: { js: REQUIRE },
    plugins: [places, required],
  })
  const inputs = [...Object.keys(metafile.inputs).filter((name) => !name.startsWith(`${REQUIRED}:`)), SELF]
  const listed = inputs.map((file) => [posix(relative(COMPILED, file)), states.get(file)])
  writeFileSync(join(folder, 'inputs.json'), JSON.stringify(Object.fromEntries(listed)))
  return inputs.length
}

const main = async () => {
  if (currentBundle(COMPILED) !== undefined) return
  const fresh = `${TARGET}.new-${process.pid}`
  try {
    const count = await bundle(fresh)
    rmSync(TARGET, { recursive: true, force: true })
    renameSync(fresh, TARGET)
    process.stdout.write(`bundle: made of ${count} files\n`)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

await main()
