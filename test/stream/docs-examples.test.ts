import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
import { startService } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

interface Block {
  language: 'sh' | 'js'
  text: string
  line: number
}

const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/^```(sh|js) run\n(.*?)^```$/gms)].map((match) => ({
    language: match[1] as Block['language'],
    text: match[2],
    line: markdown.slice(0, match.index).split('\n').length,
  }))

/** The undici of the project stands in where Node has no WebSocket yet. */
const WEB_SOCKET = "import { WebSocket } from 'undici'\n"

/** All blocks as one shell script, so that each sees what the ones before it have set. */
const scriptOf = (blocks: readonly Block[], folder: string): string =>
  blocks
    .map(({ language, text, line }) => {
      const said = `echo "line ${line}" >&2\n`
      if (language === 'sh') return said + text
      const file = `${folder}/line-${line}.mjs`
      writeFileSync(file, (text.includes('new WebSocket') ? WEB_SOCKET : '') + text)
      return `${said}export TOKEN KEY SECRET\nnode ${file}\n`
    })
    .join('\n')

const run = (script: string, folder: string, url: string): Promise<{ code: number | null; errors: string }> =>
  new Promise((done) => {
    const env = { ...process.env, WAYMARK: url }
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', script], {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    child.stderr.on('data', (text) => {
      errors += text
    })
    child.once('close', (code) => done({ code, errors }))
  })

const missing = ['curl', 'bash'].find((tool) => spawnSync(tool, ['--version']).status !== 0)

test('the examples for integrators work, in their order', {
  skip: missing === undefined ? false : `needs ${missing}`,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const service = await startService(`${folder}/data`)
  t.teardown(() => service.kill())
  const blocks = blocksOf(readFileSync('docs/integrate.md', 'utf8'))
  t.ok(blocks.length >= 9, `${blocks.length} examples`)
  const { code, errors } = await run(scriptOf(blocks, folder), folder, service.url)
  t.equal(code, 0, 'every example ends well', { errors: errors.slice(-1_500) })
})
