import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'tap'

/** Runs a command as if Node, and the C library, had other versions. */
const pretending = (node: string, glibc: string, ...args: string[]) => {
  const pretence = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${node}' } })
    process.report.getReport = () => ({ header: { glibcVersionRuntime: '${glibc}' } })`
  return spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretence)}`, 'dist/src/main.js', ...args],
    { encoding: 'utf8' },
  )
}

test('a Node that the binaries do not cover ends with 2 and the one command that mends it', async (t) => {
  for (const node of ['18.20.0', '20.18.3', '23.1.0', '26.0.0']) {
    const { status, stderr } = pretending(node, '2.41', 'start')
    t.equal(status, 2, node)
    t.match(stderr, /^Waymark runs on Node 20 \(from 20\.19 on\), 22 or 24, .*run: nvm install 22\n$/)
  }
})

test('Node 24 on an older C library ends with 2, and says what it needs', async (t) => {
  const { status, stderr } = pretending('24.1.0', '2.36', 'start')
  t.equal(status, 2)
  t.match(stderr, /^On Node 24 Waymark needs glibc 2\.38 .*this system has 2\.36; run: nvm install 22\n$/)
  for (const [node, glibc] of [
    ['24.1.0', '2.38'],
    ['24.1.0', '2.41'],
    ['20.19.0', '2.28'],
    ['22.1.0', '2.36'],
  ])
    t.match(pretending(node, glibc, 'nonsense').stderr, /no command "nonsense"/, `Node ${node} on glibc ${glibc}`)
})

test('what package.json asks for is what the start asks for', async (t) => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'))
  t.equal(engines.node, '^20.19 || ^22 || ^24')
})

/** Whether the oldest Node that we run on is in a range such as `>= 20.18.1` or `^18.17.0 || >=20.5.0`. */
const takesOldest = (range: string): boolean =>
  range.split('||').some((part) => {
    const [, sign = '', ...numbers] = /^\s*(>=|\^|~)?\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(part) ?? []
    const [major, minor, patch] = numbers.map((number) => Number(number ?? 0))
    if (sign !== '>=') return major === 20 && minor <= 19
    return major < 20 || (major === 20 && (minor < 19 || (minor === 19 && patch === 0)))
  })

test('every library that is installed with it takes the oldest Node that we run on', async (t) => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: { [path: string]: { dev?: boolean; optional?: boolean; engines?: { node?: string } } }
  }
  const ranges = Object.entries(packages).flatMap(([path, { dev, optional, engines }]) =>
    path === '' || dev === true || optional === true || engines?.node === undefined || engines.node === '*'
      ? []
      : [{ path, ...engines }],
  )
  t.ok(ranges.length > 50)
  t.same(
    ranges.filter(({ node = '' }) => !takesOldest(node)).map(({ path }) => path),
    ['node_modules/uWebSockets.js'],
    'but the server library, which carries a binary for Node 20 (docs/decisions/0016)',
  )
})

test('help and version need no covered Node; help names every command', async (t) => {
  const { status, stdout } = pretending('18.0.0', '2.41', 'help')
  t.equal(status, 0)
  for (const command of ['start', 'demo', 'replay', 'watch', 'rebuild', 'doctor', 'migrate', 'backup', 'restore'])
    t.match(stdout, new RegExp(`waymark ${command}`))
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  t.match(pretending('18.0.0', '2.41', '--version'), { status: 0, stdout: `${version}\n` })
})
