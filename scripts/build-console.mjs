// Builds the console (src/console) into dist/console: hashed files under assets/, each with its `br` and `gz` form, and index.html.
// Does nothing when its inputs are unchanged, and nothing where the development packages are absent.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const SOURCE = 'src/console'
const TARGET = 'dist/console'
const PACKAGES = ['svelte', 'esbuild', 'maplibre-gl', '@mapbox/mapbox-gl-rtl-text', 'pmtiles', 'uplot', 'uqr']
const MAPLIBRE = 'node_modules/maplibre-gl/dist'
const RTL_TEXT = 'node_modules/@mapbox/mapbox-gl-rtl-text/dist/mapbox-gl-rtl-text.js'
const COMPRESSED = /\.(js|css|svg|json)$/
const BROTLI_QUALITY = 9

const filesBelow = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort()

const inputsHash = () => {
  const hash = createHash('sha256').update(process.version)
  const inputs = ['scripts/build-console.mjs', ...filesBelow(SOURCE)]
  for (const name of PACKAGES) inputs.push(join('node_modules', name, 'package.json'))
  for (const file of inputs) hash.update(file).update('\0').update(readFileSync(file)).update('\0')
  return hash.digest('hex')
}

/** Compiles `.svelte` files and runes in `.svelte.ts`; styles of components become part of the bundle's stylesheet. */
const sveltePlugin = ({ esbuild, svelte }) => {
  const styles = new Map()
  const options = { generate: 'client', dev: false }
  return {
    name: 'svelte',
    setup(build) {
      build.onResolve({ filter: /^component-style:/ }, ({ path }) => ({ path, namespace: 'component-style' }))
      build.onLoad({ filter: /.*/, namespace: 'component-style' }, ({ path }) => ({
        contents: styles.get(path),
        loader: 'css',
      }))
      build.onLoad({ filter: /\.svelte$/ }, ({ path }) => {
        const { js, css, warnings } = svelte.compile(readFileSync(path, 'utf8'), {
          ...options,
          filename: path,
          css: 'external',
        })
        const notes = warnings.map(({ code, message, start }) => ({
          text: `${code}: ${message}`,
          location: { file: path, line: start?.line ?? 1, column: start?.column ?? 0 },
        }))
        if (!css?.code) return { contents: js.code, warnings: notes }
        const name = `component-style:${path}`
        styles.set(name, css.code)
        return { contents: `${js.code}\nimport ${JSON.stringify(name)}`, warnings: notes }
      })
      build.onLoad({ filter: /\.svelte\.ts$/ }, async ({ path }) => {
        const { code } = await esbuild.transform(readFileSync(path, 'utf8'), { loader: 'ts', target: 'esnext' })
        return { contents: svelte.compileModule(code, { ...options, filename: path }).js.code }
      })
    },
  }
}

const hashOf = (bytes) => createHash('sha256').update(bytes).digest('base64url').replace(/[-_]/g, '').slice(0, 10)

const build = async (tools, folder) => {
  const assets = join(folder, 'assets')
  mkdirSync(assets, { recursive: true })
  const copied = (file, name = basename(file, extname(file))) => {
    const bytes = readFileSync(file)
    const named = `${name}-${hashOf(bytes)}${extname(file)}`
    writeFileSync(join(assets, named), bytes)
    return named
  }
  const mapWorker = copied(`${MAPLIBRE}/maplibre-gl-csp-worker.js`, 'map-worker')
  const common = {
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['es2022', 'safari16'],
    outdir: assets,
    metafile: true,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    conditions: ['svelte', 'browser', 'production'],
    logLevel: 'warning',
    legalComments: 'none',
  }
  const nameOf = ({ metafile }, entry) =>
    basename(Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === entry)[0])
  const worker = await tools.esbuild.build({ ...common, format: 'iife', entryPoints: [`${SOURCE}/live/worker.ts`] })
  const page = await tools.esbuild.build({
    ...common,
    splitting: true,
    entryPoints: [`${SOURCE}/main.ts`],
    plugins: [sveltePlugin(tools)],
    define: {
      LIVE_WORKER: JSON.stringify(`/assets/${nameOf(worker, `${SOURCE}/live/worker.ts`)}`),
      RTL_TEXT: JSON.stringify(`/assets/${copied(RTL_TEXT, 'rtl-text')}`),
      MAP_WORKER: JSON.stringify(`/assets/${mapWorker}`),
    },
  })
  const main = Object.entries(page.metafile.outputs).find(([, { entryPoint }]) => entryPoint === `${SOURCE}/main.ts`)
  const html = readFileSync(`${SOURCE}/index.html`, 'utf8')
    .replace('%main.js%', `/assets/${basename(main[0])}`)
    .replace('%main.css%', `/assets/${basename(main[1].cssBundle)}`)
  writeFileSync(join(folder, 'index.html'), html)
  // The stylesheet of the entry holds those of all that it loads later.
  for (const path of Object.keys(page.metafile.outputs))
    if (path.endsWith('.css') && path !== main[1].cssBundle) rmSync(path)
  for (const file of filesBelow(assets).filter((name) => COMPRESSED.test(name))) compress(file)
  writeFileSync(join(folder, 'first-view.json'), JSON.stringify(firstView(page.metafile, main[0], mapWorker, worker)))
}

/** The files that the first view of the map loads, for the test of their size. */
const firstView = ({ outputs }, main, mapWorker, worker) => {
  const wanted = new Set()
  const take = (path) => {
    if (wanted.has(path)) return
    wanted.add(path)
    for (const { path: next, kind } of outputs[path].imports) if (kind === 'import-statement') take(next)
  }
  take(main)
  wanted.add(outputs[main].cssBundle)
  for (const [path, { entryPoint }] of Object.entries(outputs))
    if (/Console|map-view/.test(entryPoint ?? '')) take(path)
  return [...wanted, mapWorker, ...Object.keys(worker.metafile.outputs)].map((path) => basename(path))
}

const compress = (file) => {
  const bytes = readFileSync(file)
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
  }
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }))
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
}

const main = async () => {
  const begun = performance.now()
  const marker = join(TARGET, 'inputs.sha256')
  if (!existsSync(SOURCE)) return
  const isPresent = PACKAGES.every((name) => existsSync(join('node_modules', name, 'package.json')))
  if (!isPresent) {
    const found = existsSync(marker) ? 'the one that was built before stays' : 'there is none'
    process.stdout.write(`console: development packages are absent, so it is not built; ${found}\n`)
    return
  }
  const hash = inputsHash()
  if (existsSync(marker) && readFileSync(marker, 'utf8') === hash) return
  // Loaded now: nothing is to be waited for where nothing is built.
  const [esbuild, svelte] = await Promise.all([import('esbuild'), import('svelte/compiler')])
  const fresh = `${TARGET}.new-${process.pid}`
  try {
    await build({ esbuild, svelte }, fresh)
    writeFileSync(join(fresh, 'inputs.sha256'), hash)
    rmSync(TARGET, { recursive: true, force: true })
    renameSync(fresh, TARGET)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  process.stdout.write(`console: built in ${Math.round(performance.now() - begun)} ms\n`)
}

await main()
