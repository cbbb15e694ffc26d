import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'

interface Package {
  folder: string
  version: string
  integrity: string
  officialTag: string
  binaries: { [path: string]: { sha256: string; gitBlob: string } }
}

const packages = JSON.parse(readFileSync('scripts/server-library.json', 'utf8')) as Package[]
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: { [name: string]: string } }

const check = (cwd: string, ...args: string[]) =>
  spawnSync(process.execPath, ['scripts/server-library.mjs', ...args], { cwd, encoding: 'utf8' })

test('the server library is what was looked at: integrity, and every binary', async (t) => {
  t.match(check('.'), { status: 0, stdout: '0 differences\n', stderr: '' })
  const page = readFileSync('docs/decisions/0016-packages-of-the-server-library.md', 'utf8')
  for (const { version, integrity, officialTag } of packages)
    for (const stated of [version, integrity, officialTag]) t.ok(page.includes(stated), stated)

  const folder = folderOf(t)
  mkdirSync(join(folder, 'scripts'))
  for (const file of ['server-library.mjs', 'server-library.json'])
    cpSync(join('scripts', file), join(folder, 'scripts', file))
  cpSync('package-lock.json', join(folder, 'package-lock.json'))
  const [{ folder: installed }] = packages
  mkdirSync(join(folder, installed), { recursive: true })
  writeFileSync(join(folder, installed, 'uws_linux_x64_115.node'), 'another program')
  t.match(check(folder), { status: 1, stderr: /uws_linux_x64_115\.node is not in the list/ })
  const [path] = Object.keys(packages[0].binaries)
  mkdirSync(join(folder, installed, path, '..'), { recursive: true })
  writeFileSync(join(folder, installed, path), 'another program')
  t.match(check(folder).stderr, new RegExp(`${path} is not as in the list`))
  const lock = readFileSync('package-lock.json', 'utf8')
  writeFileSync(join(folder, 'package-lock.json'), lock.replace(packages[0].integrity, 'sha512-AAAA'))
  t.match(check(folder).stderr, /package-lock\.json has \S+ sha512-AAAA for/)
})

test('binaries are compared with the releases of their author by what git calls them', async (t) => {
  const folder = folderOf(t)
  const git = (...args: string[]) =>
    spawnSync('git', ['-C', join(folder, 'clone'), '-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args])
  mkdirSync(join(folder, 'clone'))
  git('init', '--quiet')
  const [{ folder: installed, binaries, officialTag }] = packages
  const [first, second] = Object.keys(binaries)
  cpSync(join(installed, first), join(folder, 'clone', first.split('/').at(-1) as string))
  writeFileSync(join(folder, 'clone', second.split('/').at(-1) as string), 'another program')
  git('add', '.')
  git('commit', '--quiet', '-m', 'binaries')
  for (const { officialTag: tag } of packages) git('tag', tag)
  const { status, stdout, stderr } = check('.', '--official', join(folder, 'clone'))
  t.equal(status, 1)
  t.ok(stdout.includes(`same      ${first.split('/').at(-1)}\n`), stdout)
  t.ok(stderr.includes(`${second.split('/').at(-1)} is another one than in ${officialTag}`))
  git('tag', '--delete', officialTag)
  t.match(check('.', '--official', join(folder, 'clone')), { status: 1, stderr: `${officialTag} is not in ` })
})

test("the package whose binary was found to be the author's is loaded where it fits", async (t) => {
  const installed = existsSync(
    `node_modules/@uwsjs/${process.platform}-${process.arch}-${process.versions.node.split('.')[0]}`,
  )
  const loaded = spawnSync(
    process.execPath,
    [
      '-e',
      `import('./dist/src/ingress/uws.js').then(() => console.log(process.report.getReport().sharedObjects.join('\\n')))`,
    ],
    { encoding: 'utf8' },
  ).stdout
  const servers = loaded.split('\n').filter((path) => /[\\/]uws[^\\/]*\.node$/.test(path))
  t.equal(servers.length, 1, loaded)
  t.equal(servers[0]?.includes('@uwsjs'), installed)
})

test('one of the packages has a binary for each Node on each system, and is the one that is loaded', async (t) => {
  const [older, later] = packages.map(({ binaries }) => Object.keys(binaries).join('\n'))
  for (const system of ['linux_x64', 'linux_arm64', 'darwin_x64', 'darwin_arm64', 'win32_x64']) {
    for (const abi of [115, 127]) t.ok(older.includes(`uws_${system}_${abi}.node`), `${system} ${abi}`)
    t.ok(later.includes(`uws_${system}_137.node`), `${system} Node 24`)
  }
  t.notOk(older.includes('_137.node'), 'else the later one can go')
  const source = readFileSync('src/ingress/uws.ts', 'utf8')
  t.match(source, /LAST_MODULES_OF_OLD_GLIBC = 127\n/)
})

test('the software bill of materials names every production dependency, with its hash', async (t) => {
  const folder = folderOf(t)
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) symlinkSync(resolve(file), join(folder, file))
  symlinkSync(resolve('scripts'), join(folder, 'scripts'))
  const { status, stdout } = spawnSync('npm', ['run', '--silent', 'sbom'], { cwd: folder, encoding: 'utf8' })
  t.equal(status, 0)
  const { bomFormat, metadata, components } = JSON.parse(stdout) as {
    bomFormat: string
    metadata: { component: { name: string } }
    components: { name: string; version: string; purl: string; hashes?: { alg: string }[] }[]
  }
  t.equal(bomFormat, 'CycloneDX')
  t.equal(metadata.component.name, 'waymark')
  const named = new Map(components.map((component) => [component.name, component]))
  const aliased = (name: string, wanted: string): string => /^npm:(.+)@/.exec(wanted)?.[1] ?? name
  for (const [name, wanted] of Object.entries(manifest.dependencies)) {
    const found = named.get(name) ?? named.get(aliased(name, wanted))
    t.ok(found, name)
    t.match(found?.hashes, [{ alg: 'SHA-512' }], `${name} has a hash`)
  }
  for (const name of ['tap', 'typescript', '@biomejs/biome']) t.notOk(named.has(name), `${name} is for development`)
  t.notMatch(stdout, /"url":\s*"https?:\/\/[^"]*registry/, 'no host of a registry')
})

test('a production install has what the service loads, and nothing for tests and the page, which is built before', async (t) => {
  const sources = ['src', 'projections']
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
    .filter((file) => file.endsWith('.ts') && !file.startsWith(join('src', 'console')))
    .map((file) => readFileSync(file, 'utf8'))
  t.ok(sources.length > 100, 'the walk found the source')
  for (const name of Object.keys(manifest.dependencies)) {
    const named = new RegExp(`'${name}(/[^']*)?'`)
    t.ok(
      sources.some((text) => named.test(text)),
      name,
    )
  }
})
