import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { lockDataFolder } from '../../src/engines/data-folder.ts'
import { openFileMailer } from '../../src/engines/file-mailer/file-mailer.ts'
import { makeFolder } from '../../src/engines/make-folder.ts'
import { beginLife } from '../../src/kit/operations/life.ts'
import { folderOf } from '../support/folder-of.ts'

test('a folder is made with those above it, or it is said at once that it cannot be', async (t) => {
  const folder = folderOf(t)
  const deep = join(folder, 'a', 'b', 'c')
  makeFolder(deep, 0o700)
  makeFolder(deep)
  for (const path of [deep, join(folder, 'a')]) t.equal(statSync(path).mode & 0o777, 0o700)
  writeFileSync(join(folder, 'file'), '')
  t.throws(() => makeFolder(join(folder, 'file')), { code: 'ENOTDIR' })
  t.throws(() => makeFolder(join(folder, 'file', 'below')), { code: 'ENOTDIR' })
  const nowhere = '/proc/nope/deep'
  t.throws(() => makeFolder(nowhere), { code: 'ENOENT' })
  t.throws(() => lockDataFolder(nowhere), { code: 'ENOENT' })
  t.throws(() => beginLife(nowhere, () => 'id'), { code: 'ENOENT' })
  await t.rejects(openFileMailer({ path: nowhere, from: 'waymark@example.com' }), { code: 'ENOENT' })
})
