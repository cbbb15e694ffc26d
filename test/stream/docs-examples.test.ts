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

test('docs/integrate.md, automations.md, reports.md, routing.md, devices.md and import.md run exactly as they are pasted, each in one session', {
  skip: missing === undefined ? false : `needs ${missing}`,
  timeout: 900_000,
}, async (t) => {
  const folder = `${folderOf(t)}/reader`
  mkdirSync(folder)
  const page = readFileSync('docs/integrate.md', 'utf8')
  const blocks = page.match(/^```.*$/gm) ?? []
  t.same([...new Set(blocks)].sort(), ['```', '```sh'], 'there is no example that would not be run')
  t.ok(blocks.length / 2 >= 9, `${blocks.length / 2} examples`)
  const service = await startService(`${folderOf(t)}/data`)
  t.teardown(() => service.kill())
  const { code, errors } = await run(sessionOf(page), folder, service.url)
  t.equal(code, 0, 'every example ends well', { errors: errors.slice(-1_500) })
  const automations = readFileSync('docs/automations.md', 'utf8')
  t.same([...new Set(automations.match(/^```.*$/gm))].sort(), ['```', '```sh'])
  const second = await run(sessionOf(automations), folder, service.url)
  t.equal(second.code, 0, 'and every one of the page on automations', { errors: second.errors.slice(-1_500) })
  const routing = readFileSync('docs/routing.md', 'utf8')
  t.same([...new Set(routing.match(/^```.*$/gm))].sort(), ['```', '```sh'])
  const routed = await run(sessionOf(routing), folder, service.url)
  t.equal(routed.code, 0, 'and every one of the page on routes', { errors: routed.errors.slice(-1_500) })
  const reports = readFileSync('docs/reports.md', 'utf8')
  t.same([...new Set(reports.match(/^```.*$/gm))].sort(), ['```', '```sh'])
  const third = await run(sessionOf(reports), folder, service.url)
  t.equal(third.code, 0, 'and every one of the page on reports', { errors: third.errors.slice(-1_500) })
  const devices = readFileSync('docs/devices.md', 'utf8')
  t.same([...new Set(devices.match(/^```.*$/gm))].sort(), ['```', '```sh'])
  const fourth = await run(sessionOf(devices), folder, service.url)
  t.equal(fourth.code, 0, 'and every one of the page on devices', { errors: fourth.errors.slice(-1_500) })

  const importing = readFileSync('docs/import.md', 'utf8')
  t.same([...new Set(importing.match(/^```.*$/gm))].sort(), ['```', '```sh'])
  const fifth = await run(sessionOf(importing), folder, service.url)
  t.equal(fifth.code, 0, 'and every one of the page on imports', { errors: fifth.errors.slice(-1_500) })

  const { isGenuine } = await import(`${folder}/verify.mjs`)
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
