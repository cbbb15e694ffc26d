import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { openKeyring, rotateTokenKey } from '../../src/kit/keyring-file.ts'
import { folderOf } from '../support/folder-of.ts'

test('a keyring is made once, readable by its owner alone, and is the same afterwards', async (t) => {
  const path = join(folderOf(t), 'deep', 'keys.json')
  const rings = await Promise.all(Array.from({ length: 8 }, () => openKeyring(path)))
  t.equal(new Set(rings.map(({ fingerprint }) => fingerprint)).size, 1, 'processes that start at once share one keyring')
  t.equal((await stat(path)).mode & 0o777, 0o600)
  const again = await openKeyring(path)
  t.equal(again.fingerprint, rings[0].fingerprint)
  t.same(again.hmac('unique', 'a'), rings[3].hmac('unique', 'a'))
  t.not(again.hmac('unique', 'a').toString('hex'), again.hmac('trip-token', 'a').toString('hex'))
})

test('what one ring encrypts it alone decrypts, for the same purpose', async (t) => {
  const folder = folderOf(t)
  const ring = await openKeyring(join(folder, 'a.json'))
  const other = await openKeyring(join(folder, 'b.json'))
  const sealed = ring.encrypt('webhook', 'whsec_ä')
  t.equal(ring.decrypt('webhook', sealed), 'whsec_ä')
  t.not(ring.encrypt('webhook', 'whsec_ä'), sealed, 'a nonce of its own each time')
  t.throws(() => ring.decrypt('smtp', sealed))
  t.throws(() => other.decrypt('webhook', sealed))
  const end = sealed.at(-5) === 'A' ? 'B' : 'A'
  t.throws(() => ring.decrypt('webhook', sealed.slice(0, -5) + end + sealed.slice(-4)))
  t.throws(() => ring.decrypt('webhook', 'nonsense'))
})

test('rotation signs with a new key, keeps the keys before, and changes neither hashes nor fingerprint', async (t) => {
  const path = join(folderOf(t), 'keys.json')
  const before = await openKeyring(path)
  const after = await rotateTokenKey(path)
  t.equal(after.tokenKeys.length, 2)
  t.equal(after.tokenKeys[1].kid, before.tokenKeys[0].kid)
  t.not(after.tokenKeys[0].kid, before.tokenKeys[0].kid)
  t.equal(after.fingerprint, before.fingerprint)
  t.same(after.hmac('unique', 'x'), before.hmac('unique', 'x'))
  t.same((await openKeyring(path)).tokenKeys, after.tokenKeys)
})

test('a file that is no keyring is refused without quoting it', async (t) => {
  const path = join(folderOf(t), 'keys.json')
  for (const content of ['{"secret-stuff', 'null', '{"format":"waymark-keyring.v1"}']) {
    await writeFile(path, content)
    const error = await openKeyring(path).then(
      () => undefined,
      (reason: Error) => reason,
    )
    t.match(error?.message, /is not (JSON|a keyring)/)
    t.notMatch(error?.message, /secret-stuff/)
    t.equal(await readFile(path, 'utf8'), content, 'and is not replaced')
  }
})
