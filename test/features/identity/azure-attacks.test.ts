import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'tap'
import { ADA, withLiar, withProvider } from '../../support/azure-world.ts'
import { follow, type Lie, openLiar } from '../../support/oidc.ts'
import { until } from '../../support/service.ts'

const REFUSED = { error: 'invalid_credentials', code: undefined }
const NOW_S = (): number => Math.floor(Date.now() / 1_000)

const laterBy = (ms: number): (() => number) => {
  const { now } = Date
  return () => now.call(Date) + ms
}

const hmac =
  (secret: string | Buffer, hash = 'sha256') =>
  (text: string): string =>
    createHmac(hash, secret).update(text).digest('base64url')

const rsa =
  (key: KeyObject) =>
  (text: string): string =>
    sign('sha256', Buffer.from(text), key).toString('base64url')

test('the public key of the provider is no secret to sign with, even where its document offers HS256', async (t) => {
  const liar = await openLiar(t, ADA)
  const { publicKey, jwk, told } = liar
  const { attempt, clock } = await withLiar(t, liar)
  const secrets = [
    publicKey.export({ type: 'spki', format: 'pem' }),
    String(publicKey.export({ type: 'spki', format: 'pem' })).trim(),
    publicKey.export({ type: 'pkcs1', format: 'pem' }),
    publicKey.export({ type: 'spki', format: 'der' }),
    JSON.stringify(publicKey.export({ format: 'jwk' })),
    JSON.stringify(jwk),
    Buffer.from(String(jwk.n), 'base64url'),
    'a-secret-of-32-characters-or-more',
    '',
  ]
  for (const algorithms of [['RS256'], ['RS256', 'HS256', 'HS384', 'HS512'], undefined]) {
    clock.advance(10 * 60_000)
    told.document = { id_token_signing_alg_values_supported: algorithms }
    t.match(await attempt({}), { code: /.+/ }, 'the honest one')
    for (const [index, secret] of secrets.entries())
      for (const bits of index === 0 ? [256, 384, 512] : [256]) {
        const lie: Lie = { head: { alg: `HS${bits}` }, sign: hmac(secret, `sha${bits}`) }
        t.match(await attempt(lie), REFUSED, `HS${bits} by form ${index} of the key, ${algorithms}`)
      }
  }
})

test('a token without a signature is refused however it spells none, even where the document offers it', async (t) => {
  const liar = await openLiar(t, ADA)
  const { attempt, clock } = await withLiar(t, liar)
  const spellings = ['none', 'None', 'NONE', 'nOnE', ' none', 'none\u0000', '', null, 0, ['none'], ['RS256'], undefined]
  for (const algorithms of [['RS256'], ['none', 'None', 'NONE', 'nOnE', 'RS256', '', ' none', 'none\u0000']]) {
    clock.advance(10 * 60_000)
    liar.told.document = { id_token_signing_alg_values_supported: algorithms }
    for (const alg of [...spellings, 'RS256'])
      t.match(await attempt({ head: { alg }, sign: () => '' }), REFUSED, JSON.stringify([alg, algorithms]))
    t.match(await attempt({ head: { alg: 'none' }, sign: () => 'AA' }), REFUSED, 'none with a signature')
  }
})

test('a key is chosen by its id, its kind and its use; a symmetric one in the set is none', async (t) => {
  const liar = await openLiar(t, ADA)
  const { told, jwk } = liar
  const { attempt, clock } = await withLiar(t, liar)
  const other = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const own = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const secret = Buffer.alloc(32, 7)
  const kept = (kid: string, more: object = {}) => ({ ...other.publicKey.export({ format: 'jwk' }), kid, ...more })
  const oct = { kty: 'oct', k: secret.toString('base64url') }
  told.keys = [jwk, { ...oct, kid: 'oct', alg: 'HS256', use: 'sig' }, { ...oct, kid: 'key' }, kept('other')]
  told.document = { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'PS256', 'ES256'] }
  t.match(await attempt({}), { code: /.+/ }, 'the honest one')
  t.match(await attempt({ head: { kid: 'other' }, sign: rsa(other.privateKey) }), { code: /.+/ }, 'of the other key')
  const lies: { [name: string]: Lie } = {
    'the symmetric key': { head: { alg: 'HS256', kid: 'oct' }, sign: hmac(secret) },
    'the symmetric key under the id of another': { head: { alg: 'HS256', kid: 'key' }, sign: hmac(secret) },
    'the symmetric key without an id': { head: { alg: 'HS256', kid: undefined }, sign: hmac(secret) },
    'RS256 by the id of the symmetric key': { head: { kid: 'oct' }, sign: rsa(other.privateKey) },
    'the id of another key': { head: { kid: 'other' } },
    'another key under this id': { sign: rsa(other.privateKey) },
    'no id among several keys': { head: { kid: undefined }, sign: rsa(other.privateKey) },
    'an id that is a path': { head: { kid: '../../../../dev/null' }, sign: hmac('') },
    'an id that is no text': { head: { kid: ['key'] } },
    'a key of its own in the header': {
      head: { kid: undefined, jwk: own.publicKey.export({ format: 'jwk' }) },
      sign: rsa(own.privateKey),
    },
    'another algorithm of the same key': { head: { alg: 'PS256' } },
    'a curve': { head: { alg: 'ES256' } },
  }
  for (const [name, lie] of Object.entries(lies)) t.match(await attempt(lie), REFUSED, name)
  clock.advance(10 * 60_000)
  told.keys = [jwk, kept('encrypts', { use: 'enc' }), kept('signs', { key_ops: ['sign'] })]
  for (const kid of ['encrypts', 'signs'])
    t.match(await attempt({ head: { kid }, sign: rsa(other.privateKey) }), REFUSED, `a key that ${kid}`)
})

test('keys that the provider changes are fetched when an unknown one signs, a minute after the last ones', async (t) => {
  const liar = await openLiar(t, ADA)
  const { told, asked, jwk } = liar
  const { attempt } = await withLiar(t, liar)
  const next = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const byNext: Lie = { head: { kid: 'next' }, sign: rsa(next.privateKey) }
  const fetched = (): number => asked.filter((path) => path === '/jwks').length
  t.match(await attempt({}), { code: /.+/ }, 'the first key')
  told.keys = [{ ...next.publicKey.export({ format: 'jwk' }), kid: 'next', alg: 'RS256', use: 'sig' }]
  t.match(await attempt(byNext), REFUSED, 'nobody makes the service fetch again and again')
  t.equal(fetched(), 1)
  t.intercept(Date, 'now', { value: laterBy(61_000) })
  t.match(await attempt(byNext), { code: /.+/ }, 'the next one')
  t.match(await attempt({}), REFUSED, 'the first one has gone')
  t.equal(fetched(), 2)
  told.keys = [jwk]
  t.intercept(Date, 'now', { value: laterBy(300_000) })
  t.match(await attempt(byNext), REFUSED, 'a key that has gone serves for five minutes more, and no longer')
  t.match(await attempt({}), { code: /.+/ }, 'and the first is back')
  t.equal(asked.filter((path) => path.endsWith('openid-configuration')).length, 1)
})

test('what a header asks to be understood is refused, and no address in it is ever called', async (t) => {
  const liar = await openLiar(t, ADA)
  const { issuer, asked } = liar
  const { attempt } = await withLiar(t, liar)
  const own = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  for (const crit of [['exp'], ['b64'], [], 'exp', null])
    t.match(await attempt({ head: { crit, b64: false, exp: NOW_S() + 300 } }), REFUSED, JSON.stringify({ crit }))
  for (const member of ['jku', 'x5u'])
    for (const kid of ['key', 'mine', undefined]) {
      const head = { kid, [member]: `${issuer}/aimed` }
      t.match(await attempt({ head, sign: rsa(own.privateKey) }), REFUSED, `${member}, ${kid}`)
    }
  t.match(
    await attempt({ head: { jku: `${issuer}/aimed`, x5u: `${issuer}/aimed` } }),
    { code: /.+/ },
    'is not looked at',
  )
  t.notOk(asked.includes('/aimed'))
})

test('times, audiences and issuers of a token', async (t) => {
  const liar = await openLiar(t, ADA)
  const { attempt } = await withLiar(t, liar)
  const now = NOW_S()
  const refused: { [name: string]: { [claim: string]: unknown } } = {
    'not yet': { nbf: now + 3_600 },
    'not yet, as text': { nbf: String(now + 3_600) },
    'no end': { exp: undefined },
    'an end that is text': { exp: String(now + 300) },
    'an end that is none': { exp: null },
    'begun at no time': { iat: undefined },
    'no audience': { aud: undefined },
    'an empty audience': { aud: [] },
    'another audience': { aud: ['another-client'] },
    'several audiences, for another': { aud: ['waymark', 'another-client'], azp: 'another-client' },
    'several audiences, for nobody said': { aud: ['waymark', 'another-client'] },
    'an audience that is an object': { aud: { waymark: true } },
    'part of the audience': { aud: 'waymark-2' },
    'no issuer': { iss: undefined },
    'an issuer that begins so': { iss: `${liar.issuer}.example.com` },
    'an issuer with a slash more': { iss: `${liar.issuer}/` },
    issuers: { iss: [liar.issuer] },
    'no subject': { sub: undefined },
    'a nonce that is no text': { nonce: [''] },
  }
  for (const [name, claims] of Object.entries(refused)) t.match(await attempt({ claims }), REFUSED, name)
  const taken: { [name: string]: { [claim: string]: unknown } } = {
    'this audience in a list': { aud: ['waymark'] },
    'several audiences, for this one': { aud: ['waymark', 'another-client'], azp: 'waymark' },
    'since before': { nbf: now - 60 },
    // A token is looked at once, and the session that follows has its own end.
    'an end far away': { exp: now + 100 * 365 * 86_400 },
  }
  for (const [name, claims] of Object.entries(taken)) t.match(await attempt({ claims }), { code: /.+/ }, name)
})

test('a return and a code serve once, also where two come at the same moment', async (t) => {
  const { begin, back, signIn, issuer, signInAs, exchange } = await withProvider(t)
  signIn.as = 'ada'
  const { location, cookie } = await begin()
  const url = await follow(location, issuer)
  const returned = await Promise.all(Array.from({ length: 8 }, () => back(url, cookie)))
  t.equal(returned.filter(({ code }) => code !== undefined).length, 1)
  const signedIn = await signInAs()
  const exchanged = await Promise.all(Array.from({ length: 8 }, () => exchange(signedIn)))
  t.same(exchanged.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401, 401, 401])
})

test('a provider that sends the service elsewhere is not followed', async (t) => {
  let from = ''
  const status = { code: 302 }
  const liar = await openLiar(t, ADA, (path, response) => {
    if (path !== from) return false
    response.writeHead(status.code, { location: '/elsewhere' }).end()
    return true
  })
  const { begin, attempt } = await withLiar(t, liar)
  for (status.code of [301, 302, 303, 307, 308]) {
    from = '/.well-known/openid-configuration'
    t.equal((await begin()).answer.status, 503, `${status.code}`)
  }
  for (status.code of [302, 307])
    for (const path of ['/token', '/jwks']) {
      from = ''
      await begin()
      from = path
      t.match(await attempt({}), REFUSED, `${path}: ${status.code}`)
    }
  t.notOk(liar.asked.includes('/elsewhere'))
})

test('an answer that comes a byte at a time is waited for as long as any', async (t) => {
  let from = '/.well-known/openid-configuration'
  const open = new Set<ServerResponse>()
  const liar = await openLiar(t, ADA, (path, response) => {
    if (path !== from) return false
    open.add(response)
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => {
      clearInterval(timer)
      open.delete(response)
    })
    return true
  })
  const { begin, attempt } = await withLiar(t, liar, 0.5)
  t.equal((await begin()).answer.status, 503)
  for (const path of ['/token', '/jwks']) {
    from = ''
    t.equal((await begin()).answer.status, 302)
    from = path
    t.match(await attempt({}), REFUSED, path)
  }
  await until('the connections to close', () => open.size === 0)
})

test('a document leads to no address inside, whichever of its members names it', async (t) => {
  const inside = createServer((socket) => socket.destroy())
  let reached = 0
  inside.on('connection', () => reached++)
  // All of 127.0.0.0/8 and ::1, but 127.0.0.1 alone may be called.
  await new Promise<void>((done) => inside.listen(0, '::', done))
  t.teardown(() => new Promise((done) => inside.close(done)))
  const { port } = inside.address() as AddressInfo
  const liar = await openLiar(t, ADA)
  const { attempt, clock } = await withLiar(t, liar)
  for (const host of [
    '127.0.0.2',
    '[::1]',
    '[::ffff:127.0.0.2]',
    '0x7f000002',
    '2130706434',
    '169.254.169.254',
    '0.0.0.0',
  ])
    for (const member of ['token_endpoint', 'jwks_uri']) {
      clock.advance(10 * 60_000)
      liar.told.document = { [member]: `http://${host}:${port}/` }
      t.match(await attempt({}), REFUSED, `${member} ${host}`)
    }
  t.equal(reached, 0)
})
