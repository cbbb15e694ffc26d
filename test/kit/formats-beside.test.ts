import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { PROJECTIONS } from '../../src/product-parts.ts'

/**
 * What processes of the version before write and read: types of events that carry a version, versions of tables and read
 * models, and the rows by which processes divide the work. `added` has what came since, each with why a process of the
 * version before that runs beside this one is not harmed. A release empties it into the lists.
 */
const before = JSON.parse(readFileSync('test/fixtures/formats-before.json', 'utf8')) as {
  events: string[]
  tables: string[]
  leases: string[]
  added: { [format: string]: string }
}

const sources = execFileSync('git', ['ls-files', 'src', 'projections'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path.endsWith('.ts') && !path.startsWith('src/console/'))
  .map((path) => readFileSync(path, 'utf8'))

const found = (pattern: RegExp): string[] =>
  sources.flatMap((text) => [...text.matchAll(pattern)].map(([, one]) => one))

const written = {
  events: found(/'([A-Za-z][\w-]*\.v\d+)'/g),
  tables: [
    ...sources
      .flatMap((text) => [...text.matchAll(/: TableDeclaration = \{\s*name: '([^']+)',\s*version: (\d+)/g)])
      .map(([, name, version]) => `${name} ${version}`),
    ...PROJECTIONS.flatMap(({ tables }) => tables.map(({ name, version }) => `${name} ${version}`)),
    ...PROJECTIONS.map(({ name, version }) => `${name} ${version} (read model)`),
  ],
  leases: membersOf('src/kit/consumers/lease-rows.ts', ['Held', 'Member']),
}

function membersOf(path: string, interfaces: readonly string[]): string[] {
  const text = readFileSync(path, 'utf8')
  return interfaces.flatMap((name) => {
    const body = new RegExp(`export interface ${name}\\b[^{]*\\{([\\s\\S]*?)\\n\\}`).exec(text)?.[1] ?? ''
    return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member]) => `${name}.${member}`)
  })
}

const kinds = ['events', 'tables', 'leases'] as const

test('what this version writes is read by the version before, which may run beside it', async (t) => {
  for (const kind of kinds) {
    const all = [...new Set(written[kind])]
    t.ok(all.length > 4, `${all.length} ${kind} are found`)
    for (const format of all)
      t.ok(
        before[kind].includes(format) || (before.added[format] ?? '').length > 20,
        `${format} (${kind}) is new: processes of the version before cannot read it. Read both forms in this version and write the new one from the next on, or only where a setting says that all processes are new; or, where the older ones pass it over unharmed, say in "added" of test/fixtures/formats-before.json why.`,
      )
  }
})

test('nothing that the version before writes is left unread', async (t) => {
  for (const kind of ['events', 'leases'] as const)
    for (const format of before[kind])
      t.ok(
        written[kind].includes(format),
        `${format} (${kind}) is in logs and tables of the version before and in this source no more. Keep reading it.`,
      )
  const known = new Set(kinds.flatMap((kind) => written[kind]))
  for (const format of Object.keys(before.added)) t.ok(known.has(format), `${format} is in "added" and is not written`)
})
