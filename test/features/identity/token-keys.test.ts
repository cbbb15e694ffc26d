import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { test } from 'tap'
import { Tokens } from '../../../src/features/identity/sessions/tokens.ts'
import { openKeyring } from '../../../src/kit/keys/keyring-file.ts'
import { folderOf } from '../../support/folder-of.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const TTL_MS = 60_000
const SUBJECT = { userId: 'u', organizationId: 'o', jti: 'j' }
const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0], 'base64url').toString()).kid

test('tokens of before and after a rotation are good until they end; a stolen key is good for no longer than that', async (t) => {
  const keyring = await openKeyring(join(folderOf(t), 'keys.json'))
  const [stolen] = keyring.tokenKeys
  const forge = createSigner({ key: stolen.privateKey, algorithm: 'EdDSA', kid: stolen.kid })
  const forged = forge({ sub: 'u', org: 'o', jti: 'j', iat: NOW / 1000, exp: NOW / 1000 + 1_000_000, iss: 'waymark' })
  const tokens = new Tokens(keyring, TTL_MS)
  const elsewhere = new Tokens(keyring, TTL_MS)
  const before = tokens.issue(SUBJECT, NOW).token
  t.match(elsewhere.verify(before, NOW), SUBJECT)

  await keyring.rotateTokenKey(NOW + 1, TTL_MS)
  const after = tokens.issue(SUBJECT, NOW + 1).token
  t.not(kidOf(after), kidOf(before))
  t.equal(kidOf(before), stolen.kid)
  for (const verifier of [tokens, elsewhere]) {
    t.match(verifier.verify(before, NOW + TTL_MS - 1), SUBJECT)
    t.match(verifier.verify(after, NOW + TTL_MS - 1), SUBJECT)
    t.equal(verifier.verify(forged, NOW + 2).expiresAt, NOW + 1 + TTL_MS, 'and sockets end with the key')
    t.throws(() => verifier.verify(forged, NOW + 1 + TTL_MS), { code: 'unauthenticated' })
  }
  await keyring.dropTokenKeys(NOW + TTL_MS + 2)
  t.equal(keyring.tokenKeys.length, 1)
  t.throws(() => tokens.verify(before, NOW + 2), { code: 'unauthenticated' })
  t.match(tokens.verify(after, NOW + 2), SUBJECT)
})
