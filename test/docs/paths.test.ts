import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'

const SUFFIX = /[\w>*]\.(ts|js|mjs|cjs|md|json|ya?ml|sh|html|css|png|svg)$/
/** Written by hand, but about the past: it names what has gone. */
const HISTORY = 'CHANGELOG.md'

const git = (...args: string[]): string[] => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean)

/** Each file and folder of the project, with a slash before it. */
const PATHS = [
  ...new Set(
    git('ls-files', '--cached', '--others', '--exclude-standard').flatMap((file) => {
      const steps = file.split('/')
      return steps.map((_, i) => `/${steps.slice(0, i + 1).join('/')}`)
    }),
  ),
]
const SOURCES = PATHS.filter((path) => /^\/(src|demo)\/.*\.ts$/.test(path)).map((path) =>
  readFileSync(`.${path}`, 'utf8'),
)
/** A span with a slash is a path when it begins with one of these; others are permissions, media types, or data. */
const TOPS = new Set(PATHS.flatMap((path) => /^\/(?:(?:src|test)\/)?([\w.-]+)$/.exec(path)?.[1] ?? []))

const pages = PATHS.filter((path) => path.endsWith('.md') && path !== `/${HISTORY}`).map((path) => ({
  page: path.slice(1),
  // An example in a fence is run by a test of its own.
  text: readFileSync(`.${path}`, 'utf8').replace(/^```[\s\S]*?^```/gm, ''),
}))

/**
 * Whether backticks hold a path of the project: one word with a suffix of a file, or one that begins with a folder of the
 * project, of `src` or of `test`. Addresses, routes, flags and packages are none.
 */
const isPath = (span: string): boolean =>
  !/\s|:\/\/|^[/@-]|^file:/.test(span) && (SUFFIX.test(span) || (span.includes('/') && TOPS.has(span.split('/')[0])))

/**
 * Whether the project has it: any of its paths may end with the words, so `owners.ts` and `kit/consumers/owners.ts` are the same
 * file. `*` and `<noun>` stand for one name. What is compiled counts as its source. A file of data has a name that the source writes.
 */
const exists = (span: string): boolean => {
  const wanted = span.replace(/^\.\//, '').replace(/\/$/, '')
  const pattern = wanted
    .split(/(<[^>]+>|\*+)/)
    .map((part, i) => (i % 2 === 1 ? '[^/]+' : part.replace(/[.+^${}()|[\]\\?]/g, '\\$&')))
    .join('')
    .replace(/\\\.js$/, '\\.[jt]s')
  const ending = new RegExp(`/${pattern}$`)
  if (PATHS.some((path) => ending.test(path))) return true
  const data = wanted.replace(/^<data>\//, '')
  return !data.includes('/') && SOURCES.some((source) => source.includes(`'${data}'`))
}

test('every path in backticks names what the project has: mend the text of what has moved', async (t) => {
  let count = 0
  for (const { page, text } of pages)
    for (const [, span] of text.matchAll(/`([^`\n]+)`/g)) {
      if (!isPath(span)) continue
      count++
      if (!exists(span)) t.fail(`${page} names ${span}`)
    }
  t.ok(count > 100, `${count} paths on ${pages.length} pages`)
})

/** The anchor of a heading, as GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

test('every link between pages leads to a page and a heading that are there', async (t) => {
  let count = 0
  for (const { page, text } of pages)
    for (const [, address] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(address)) continue
      count++
      const [file, anchor] = address.split('#')
      const target = file === '' ? page : join(dirname(page), file)
      if (!PATHS.includes(`/${target.replace(/\/$/, '')}`)) t.fail(`${page} links to ${address}`)
      else if (anchor !== undefined) {
        const headings = readFileSync(target, 'utf8').matchAll(/^#+ (.+)$/gm)
        t.ok(
          [...headings].some(([, heading]) => anchorOf(heading) === anchor),
          `${page} links to ${address}`,
        )
      }
    }
  t.ok(count > 50, `${count} links`)
})

test('the rule itself: what counts as a path, and what a path may leave out', async (t) => {
  for (const span of ['src/kit', 'roles/none.ts', 'owe.ts', 'test/stream/', '<noun>.ts']) t.ok(isPath(span), span)
  for (const span of [
    'edit/task',
    '/openapi.json',
    '--data',
    'application/json',
    '@tapjs/mock',
    'log/',
    '.js',
    'a b.ts',
  ])
    t.notOk(isPath(span), span)
  for (const span of [
    'src/kit',
    'reactors/dispatch/owe.ts',
    'owe.ts',
    'src/features/<noun>/events.ts',
    'docs/*.md',
    'main.js',
  ])
    t.ok(exists(span), span)
  for (const span of ['roles/none.ts', 'we.ts', 'src/features/*/none.ts', 'none.json']) t.notOk(exists(span), span)
})
