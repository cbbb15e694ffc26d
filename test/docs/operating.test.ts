import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'tap'
import { FLAGS } from '../../src/config-flags.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { rebuildableNames } from '../../src/operations/rebuilds.ts'
import { folderOf } from '../support/folder-of.ts'
import { startService } from '../support/service.ts'

const pages = readdirSync('docs')
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, text: readFileSync(`docs/${name}`, 'utf8') }))

const pageOf = (page: string): string => pages.find(({ name }) => name === page)?.text ?? ''

/** What a page's first shell block says, one command a line. */
const commandsOf = (page: string): string[] => {
  const [, block = ''] = /```sh\n([\s\S]*?)```/.exec(pageOf(page)) ?? []
  return block.trim().split('\n')
}

test('every metric that the docs name exists', async (t) => {
  const metrics = createMetrics()
  t.teardown(() => metrics.close())
  const shown = await metrics.text()
  // These name databases and users of a ClickHouse that begin alike.
  const own = pages.filter(({ name }) => !['clickhouse.md', 'analysis.md', 'backup.md'].includes(name))
  const named = new Set(own.flatMap(({ text }) => [...text.matchAll(/waymark_[a-z_]+[a-z]/g)].map(([name]) => name)))
  named.delete('waymark_analysis') // the database, which a backup names
  t.ok(named.size > 6, `${named.size} metrics`)
  for (const name of named) t.ok(shown.includes(`# TYPE ${name} `), name)
})

test('every command that the docs name exists, with its flags', async (t) => {
  const commands = pages.flatMap(({ name, text }) =>
    [...text.matchAll(/npx waymark ([a-z-]+)([^`\n]*)/g)].map(([, command, rest]) => ({ name, command, rest })),
  )
  t.ok(commands.length > 10)
  const help = new Map<string, string>()
  for (const { name, command, rest } of commands) {
    if (!help.has(command)) {
      const { status, stdout } = spawnSync(process.execPath, ['dist/src/main.js', command, '--help'], {
        encoding: 'utf8',
      })
      t.equal(status, 0, `${name}: ${command}`)
      help.set(command, stdout)
    }
    for (const [, flag] of rest.matchAll(/--([a-z-]+)/g))
      t.ok(
        help.get(command)?.includes(`--${flag}`) || FLAGS.some((known) => known.name === flag),
        `${name}: ${command} --${flag}`,
      )
  }
})

test('the page and the help of rebuild name every projection that can be rebuilt', (t) => {
  const [, table = ''] =
    /## Rebuilding\n[\s\S]*?\n\| - \| - \| - \|\n([\s\S]*?)\n\n/.exec(pageOf('operations.md')) ?? []
  const named = table
    .split('\n')
    .flatMap((row) => [...row.split('|')[1].matchAll(/`([^`]+)`/g)].map(([, name]) => name))
  t.same(named.sort(), rebuildableNames().sort())
  const { stdout } = spawnSync(process.execPath, ['dist/src/main.js', 'help', 'rebuild'], { encoding: 'utf8' })
  t.same([...stdout.matchAll(/^ {2}(\S+)$/gm)].map(([, name]) => name).sort(), named)
  t.end()
})

test('backup and restore as the page has them', { timeout: 900_000 }, async (t) => {
  const folder = folderOf(t)
  const service = await startService(`${folder}/data`)
  t.equal(await service.stop(), 0)
  const commands = commandsOf('backup.md')
  t.equal(commands.length, 3)
  for (const command of commands) {
    const [npx, waymark, ...args] = command.split(' ')
    t.same([npx, waymark], ['npx', 'waymark'])
    const { status, stderr } = spawnSync(process.execPath, [resolve('dist/src/main.js'), ...args], {
      cwd: folder,
      encoding: 'utf8',
    })
    t.equal(status, 0, `${command}: ${stderr}`)
  }
  const again = await startService(`${folder}/restored`)
  t.equal(await again.stop(), 0)
})
