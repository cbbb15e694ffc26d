import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { openKeyring } from '../../../src/kit/keys/keyring-file.ts'
import { folderOf } from '../../support/folder-of.ts'

test('a keyring is made once, readable by its owner alone, and is the same afterwards', async (t) => {
  const path = join(folderOf(t), 'deep', 'keys.json')
  const rings = await Promise.all(Array.from({ length: 8 }, () => openKeyring(path)))
  t.equal(
    new Set(rings.map(({ fingerprint }) => fingerprint)).size,
    1,
    'processes that start at once share one keyring',
  )
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

test('rotation signs with a new key, keeps the keys before while they verify, and changes neither hashes nor fingerprint', async (t) => {
  const path = join(folderOf(t), 'keys.json')
  const ring = await openKeyring(path)
  const [first] = ring.tokenKeys
  const hash = ring.hmac('unique', 'x')
  await ring.rotateTokenKey(10_000, 5_000)
  const [second, before, ...none] = ring.tokenKeys
  t.not(second.kid, first.kid)
  t.same(before, { ...first, verifiesUntil: 15_000 })
  t.same(none, [])
  t.equal(second.verifiesUntil, undefined)
  t.same(ring.hmac('unique', 'x'), hash)
  t.equal((await stat(path)).mode & 0o777, 0o600)
  const again = await openKeyring(path)
  t.same(again.tokenKeys, ring.tokenKeys)
  t.equal(again.fingerprint, ring.fingerprint)
  t.same(await readdir(dirname(path)), ['keys.json'], 'nothing is left beside it')

  await ring.rotateTokenKey(12_000, 5_000)
  t.same(
    ring.tokenKeys.map(({ verifiesUntil }) => verifiesUntil),
    [undefined, 17_000, 15_000],
  )
  t.equal(await ring.dropTokenKeys(15_000), false)
  t.equal(await ring.dropTokenKeys(15_001), true)
  t.same(
    ring.tokenKeys.map(({ verifiesUntil }) => verifiesUntil),
    [undefined, 17_000],
  )
  t.same((await openKeyring(path)).tokenKeys, ring.tokenKeys)
  for (let i = 0; i < 14; i++) await ring.rotateTokenKey(16_000, 5_000)
  await t.rejects(ring.rotateTokenKey(16_000, 5_000), /16 token keys verify still/)
  t.equal(ring.tokenKeys.length, 16)
})

test('a keyring that cannot be made says where and why', async (t) => {
  for (const path of ['/proc/nope/keys.json', '/proc/keys.json'])
    await t.rejects(openKeyring(path), { message: /^the keyring \S+ cannot be made: E/ }, path)
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
