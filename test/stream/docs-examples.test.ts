import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { test } from 'tap'
import { startService } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

/**
 * What stands between the fences of a page, and nothing else: all other lines are empty, so that bash names the line of the
 * page. The page is one session, as somebody pastes it.
 */
const sessionOf = (markdown: string): string => {
  let inside = false
  return markdown
    .split('\n')
    .map((line) => {
      if (!line.startsWith('```')) return inside ? line : ''
      inside = !inside && line === '```sh'
      return ''
    })
    .join('\n')
}

const run = (script: string, folder: string, url: string): Promise<{ code: number | null; errors: string }> =>
  new Promise((done) => {
    const stopAtError = ['-eE', '-o', 'pipefail', '-c', `trap 'echo "line $LINENO failed" >&2' ERR; ${script}`]
    const child = spawn('bash', stopAtError, {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, WAYMARK: url },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    child.stderr.on('data', (text) => {
      errors += text
    })
    child.once('close', (code) => done({ code, errors }))
  })

const missing = ['curl', 'bash'].find((tool) => spawnSync(tool, ['--version']).status !== 0)

/** The first one's files are read again below. */
const PAGES = [
  'integrate',
  'automations',
  'routing',
  'reports',
  'devices',
  'import',
  'export',
  'organizations',
  'drivers-day',
  'integrators-week',
]

test('the pages of docs with examples run exactly as they are pasted, each in one session', {
  skip: missing === undefined ? false : `needs ${missing}`,
  timeout: 900_000,
}, async (t) => {
  const folder = `${folderOf(t)}/reader`
  const service = await startService(`${folderOf(t)}/data`)
  t.teardown(() => service.kill())
  for (const page of PAGES) {
    const text = readFileSync(`docs/${page}.md`, 'utf8')
    const fences = text.match(/^```.*$/gm) ?? []
    t.same([...new Set(fences)].sort(), ['```', '```sh'], `${page}.md has no example that would not be run`)
    mkdirSync(`${folder}/${page}`, { recursive: true })
    const { code, errors } = await run(sessionOf(text), `${folder}/${page}`, service.url)
    t.equal(code, 0, `every example of ${page}.md ends well`, { errors: errors.slice(-1_500) })
  }

  const { isGenuine } = await import(`${folder}/integrate/verify.mjs`)
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
  const body = '{"type":"onGeofenceEntry"}'
  const headers = (at: Date) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
  })
  t.ok(isGenuine(headers(new Date()), body, secret), 'what the reference library signs is genuine')
  t.notOk(isGenuine(headers(new Date()), `${body} `, secret), 'another body is not')
  t.notOk(isGenuine(headers(new Date(Date.now() - 600_000)), body, secret), 'nor is an old one')
})
