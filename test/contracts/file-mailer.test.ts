import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openFileMailer } from '../../src/engines/file-mailer/file-mailer.ts'
import { folderOf } from '../support/folder-of.ts'
import { MAIL, mailerContract } from './mailer.ts'

const FROM = 'Waymark <waymark@example.com>'

mailerContract('file', async (t) => {
  const path = join(folderOf(t), 'mail')
  const mailer = await openFileMailer({ path, from: FROM })
  return { mailer, taken: () => readdirSync(path).map((name) => readFileSync(join(path, name), 'utf8')) }
})

test('files are for their owner alone, and links in them can be copied as they are', async (t) => {
  const path = join(folderOf(t), 'mail')
  const mailer = await openFileMailer({ path, from: FROM })
  await mailer.send(MAIL)
  const [name] = readdirSync(path)
  t.equal(statSync(path).mode & 0o77, 0)
  t.equal(statSync(join(path, name)).mode & 0o77, 0)
  t.match(readFileSync(join(path, name), 'utf8'), `token=${'a1_-'.repeat(22)}`)
})

test('a folder that is gone fails for now', async (t) => {
  const path = join(folderOf(t), 'mail')
  const mailer = await openFileMailer({ path, from: FROM })
  rmSync(path, { recursive: true })
  t.match(await mailer.send(MAIL), { kind: 'failed', error: /ENOENT/ })
  mkdirSync(path)
  t.same(await mailer.send(MAIL), { kind: 'sent' })
})
