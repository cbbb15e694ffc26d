import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'

const MODULES = 'src/cli/command-line.js'
const INPUT = 'src/input.js'

/** What is compiled and the bundle of it, which say their names in place of the service. */
const compiled = (t: Test): { path: (file: string) => string; started: () => string } => {
  const folder = folderOf(t)
  const path = (file: string): string => join(folder, 'dist', file)
  for (const name of ['src/cli', 'bundle']) mkdirSync(path(name), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const file of ['src/main.js', 'src/bundle.js']) cpSync(join('dist', file), path(file))
  writeFileSync(path(MODULES), `process.stdout.write('modules')`)
  writeFileSync(path('bundle/cli-command-line.js'), `process.stdout.write('bundle')`)
  writeFileSync(path(INPUT), 'one')
  const inputs = [MODULES, INPUT].map((file) => [file, [statSync(path(file)).mtimeMs, statSync(path(file)).size]])
  writeFileSync(path('bundle/inputs.json'), JSON.stringify(Object.fromEntries(inputs)))
  const started = (): string => spawnSync(process.execPath, [path('src/main.js')], { encoding: 'utf8' }).stdout
  return { path, started }
}

test('the bundle is run while it is of what is compiled, and never once that has changed', async (t) => {
  t.equal(compiled(t).started(), 'bundle')
  const changes: { [change: string]: (path: (file: string) => string) => void } = {
    'written anew': (path) => writeFileSync(path(INPUT), 'two'),
    'longer, at the same time': (path) => {
      const { atime, mtime } = statSync(path(INPUT))
      writeFileSync(path(INPUT), 'longer')
      utimesSync(path(INPUT), atime, mtime)
    },
    older: (path) => utimesSync(path(INPUT), 1, 1),
    gone: (path) => rmSync(path(INPUT)),
    'the list is gone': (path) => rmSync(path('bundle/inputs.json')),
    'there is no bundle': (path) => rmSync(path('bundle'), { recursive: true }),
  }
  for (const [change, make] of Object.entries(changes)) {
    const { path, started } = compiled(t)
    make(path)
    t.equal(started(), 'modules', change)
  }
})

test('a package has the bundle alone', async (t) => {
  const { path, started } = compiled(t)
  for (const file of [MODULES, INPUT, 'bundle/inputs.json']) rmSync(path(file))
  t.equal(started(), 'bundle')
})

/** Files that `npm pack` would take. */
const packed = (): string[] => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' })
  return (JSON.parse(stdout) as [{ files: { path: string }[] }])[0].files.map(({ path }) => path)
}

test('a package holds the bundle, a file for each worker, and what the service reads', async (t) => {
  t.equal(spawnSync(process.execPath, ['scripts/build-bundle.mjs'], { stdio: 'inherit' }).status, 0)
  const files = packed()
  const own = files.filter((file) => file.startsWith('dist/src/') || file.startsWith('dist/projections/'))
  t.strictSame(own.sort(), ['dist/src/bundle.js', 'dist/src/main.js'])
  const bundle = files.filter((file) => file.startsWith('dist/bundle/'))
  const named = bundle
    .filter((file) => file.endsWith('.js'))
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/new Worker\d*\(new URL\("\.\/([^"]+)"/g)])
    .map(([, name]) => `dist/bundle/${name}`)
  const workers = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && readFileSync(join('src', file), 'utf8').includes('new Worker(new URL('),
  )
  t.equal(
    new Set(named).size,
    workers.filter((file) => !file.startsWith('console')).length,
    named.map((file) => basename(file)).join(),
  )
  const read = ['src/web/account.html', 'src/features/tiles/base.pmtiles', 'demo/fleet-warsaw.csv.gz', 'package.json']
  for (const file of [...named, ...read, 'dist/bundle/cli-command-line.js']) t.ok(files.includes(file), file)
})

test('packages of CommonJS are required, and those of modules imported', (t) => {
  const files = readdirSync('dist/bundle').filter((name) => name.endsWith('.js'))
  const text = files.map((name) => readFileSync(join('dist/bundle', name), 'utf8')).join('\n')
  for (const name of ['ajv/dist/2020.js', 'fast-jwt', 'pino', 'undici']) {
    t.ok(text.includes(`__require("${name}")`), name)
    t.notOk(text.includes(`from "${name}"`), name)
  }
  // They have another file for those who require them, or none.
  for (const name of ['lmdb', 'mustache', 're2js', 'uuid']) {
    t.ok(text.includes(`from "${name}"`), name)
    t.notOk(text.includes(`__require("${name}")`), name)
  }
  t.end()
})
