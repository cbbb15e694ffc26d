import { test } from 'tap'
import { azureIssuer } from '../../../src/features/identity/sign-in/azure-provider.ts'
import { ADA, CALLBACK, openAzure, TENANT, withLiar, withProvider } from '../../support/azure-world.ts'
import { CLIENT, follow, type Lie, openLiar } from '../../support/oidc.ts'
import { codeAt } from '../../support/code-at.ts'
import { enrol } from '../../support/second-factor.ts'

test('a user of the organization signs in with their tenant, by a code that serves once and for a minute', async (t) => {
  const { begin, signInAs, exchange, user, clock, session, back } = await withProvider(t)
  const { location, answer } = await begin()
  t.match(answer, {
    status: 302,
    headers: { 'set-cookie': /Path=\/api\/v3\/auth; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/ },
  })
  const asked = new URL(location).searchParams
  t.match(Object.fromEntries(asked), {
    response_type: 'code',
    code_challenge_method: 'S256',
    redirect_uri: CALLBACK,
    nonce: /.{43}/,
  })
  t.notMatch(location, new RegExp(CLIENT.clientSecret))
  const first = await signInAs()
  t.equal(first.error, undefined)
  const signedIn = await exchange(first)
  t.match(signedIn, { status: 200, body: { token: String, expires_in: 86_400, data: { _id: user._id } } })
  t.match(await session(signedIn, user.email).call('GET', '/user'), { status: 200, body: { data: { name: 'Ada' } } })
  t.match(await exchange(first), { status: 401, body: { code: 'invalid_credentials' } }, 'a code serves once')
  t.match(await exchange({ ...first, code: `${first.code}x` }), { status: 401 }, 'however it is written')
  t.match(await back(first.url, first.cookie), { error: 'invalid_credentials' }, 'and so does what came back')
  first.url.searchParams.set('state', `${first.url.searchParams.get('state')}x`)
  t.match(await back(first.url, first.cookie), { error: 'invalid_credentials' })
  const late = await signInAs()
  clock.advance(60_001)
  t.match(await exchange(late), { status: 401 }, 'a code of over a minute')
  t.match(await exchange({ ...late, code: 'made up' }), { status: 401 })
})

test('what comes back belongs to the browser that began, and to that beginning', async (t) => {
  const { begin, back, issuer, clock, signIn } = await withProvider(t)
  signIn.as = 'ada'
  const one = await begin()
  const other = await begin()
  const url = await follow(one.location, issuer)
  t.match(await back(url, ''), { error: 'invalid_credentials' }, 'without its cookie')
  t.match(await back(url, other.cookie), { error: 'invalid_credentials' }, "with another browser's")
  const mixed = new URL(url)
  mixed.searchParams.set('state', new URL(other.location).searchParams.get('state') ?? '')
  t.match(await back(mixed, other.cookie), { error: 'invalid_credentials' }, 'a code of another beginning')
  const changed = new URL(url)
  const text = url.searchParams.get('state') ?? ''
  changed.searchParams.set('state', text.slice(0, 60) + (text[60] === 'A' ? 'B' : 'A') + text.slice(61))
  t.match(await back(changed, one.cookie), { error: 'invalid_credentials' }, 'a state that was changed')
  clock.advance(600_001)
  t.match(await back(url, one.cookie), { error: 'invalid_credentials' }, 'after ten minutes')
  const again = await begin()
  t.match(
    await back(
      new URL(`${CALLBACK}?error=access_denied&state=${again.location.match(/state=([^&]+)/)?.[1]}`),
      again.cookie,
    ),
    {
      error: 'invalid_credentials',
    },
  )
})

test('the code that comes back serves in the browser that began alone, and is not used up in another', async (t) => {
  const { begin, signInAs, exchange } = await withProvider(t)
  const other = await begin()
  const victim = await signInAs()
  for (const cookie of ['', other.cookie, `${victim.cookie}x`])
    t.match(await exchange({ ...victim, cookie }), { status: 401, body: { code: 'invalid_credentials' } }, cookie)
  const attacker = await signInAs()
  t.match(
    await exchange({ code: attacker.code, cookie: victim.cookie }),
    { status: 401 },
    'nobody is signed in as another',
  )
  const answer = await exchange(victim)
  t.match(answer, { status: 200, headers: { 'set-cookie': /^waymark-browser=; .*Max-Age=0; .*Secure$/ } })
})

test('nobody else signs in: unverified, unknown, disabled, of another organization, or after the integration ended', async (t) => {
  const { signInAs, owner, user, integrationId, call, exchange } = await withProvider(t, {
    ada: ADA,
    typed: { email: 'ada@example.com', tid: TENANT },
    // Claims that a tenant's own administrator may add.
    added: { email: 'ada@example.com', email_verified: true, tid: TENANT },
    addedText: { email: 'ada@example.com', email_verified: '1', tid: TENANT },
    unverified: { email: 'ada@example.com', email_verified: false, xms_edov: '0', tid: TENANT },
    unknown: { email: 'nobody@example.com', xms_edov: 1, tid: TENANT },
    nameless: { tid: TENANT, xms_edov: true },
  })
  for (const as of ['typed', 'added', 'addedText', 'unverified', 'unknown', 'nameless'])
    t.strictSame((await signInAs(as)).error, 'forbidden', as)
  const early = await signInAs()
  await owner.call('PATCH', `/user/${user._id}`, { status: 'disabled' })
  t.equal((await signInAs()).error, 'forbidden', 'disabled')
  t.equal((await exchange(early)).status, 401, 'nor by a code from before')
  await owner.call('PATCH', `/app-integration/${integrationId}`, { isActive: false })
  t.equal((await call('GET', `/auth/azure/${integrationId}`)).status, 404)
  t.equal((await call('GET', `/auth/azure/${user._id}`)).status, 404)
})

test('whoever registered an address before its owner signed in keeps nothing', async (t) => {
  const { signInAs, exchange, login, user, session } = await withProvider(t)
  const squatter = await login('ada@example.com')
  t.equal((await squatter.call('GET', '/user')).status, 200)
  const signedIn = session(await exchange(await signInAs()), user.email)
  t.equal((await squatter.call('GET', '/user')).status, 401, 'the session has ended')
  await t.rejects(login('ada@example.com'), /401/, 'the password is gone')
  t.equal((await signedIn.call('GET', '/user')).status, 200)
  const again = session(await exchange(await signInAs()), user.email)
  t.equal((await again.call('GET', '/user')).status, 200)
  t.equal((await signedIn.call('GET', '/user')).status, 200, 'a verified owner keeps their sessions')
})

test('an id token of another issuer, audience, nonce, tenant, time or key is worth nothing', async (t) => {
  const liar = await openLiar(t, ADA)
  const { attempt } = await withLiar(t, liar)
  t.match(await attempt({}), { code: /.+/ }, 'the honest one is taken')
  const now = Math.floor(Date.now() / 1_000)
  const lies: { [name: string]: Lie } = {
    issuer: { claims: { iss: 'https://login.microsoftonline.com/another/v2.0' } },
    audience: { claims: { aud: 'another-client' } },
    nonce: { claims: { nonce: 'of another sign-in' } },
    'no nonce': { claims: { nonce: undefined } },
    tenant: { claims: { tid: '00000000-0000-4000-8000-000000000000' } },
    'no tenant': { claims: { tid: undefined } },
    expired: { claims: { iat: now - 7_200, exp: now - 3_600 } },
    key: { head: { kid: 'another' } },
    unsigned: { head: { alg: 'none', kid: undefined }, sign: () => '' },
  }
  for (const [name, lie] of Object.entries(lies)) t.match(await attempt(lie), { error: 'invalid_credentials' }, name)
})

test('however many begin, the provider is asked once in ten minutes; one that does not answer is asked again', async (t) => {
  const liar = await openLiar(t, ADA)
  let asked = 0
  let issuer = 'http://127.0.0.1:1'
  const { begin, clock } = await openAzure(t, () => {
    asked++
    return issuer
  })
  const statuses = async () => (await Promise.all(Array.from({ length: 20 }, begin))).map(({ answer }) => answer.status)
  t.same(new Set(await statuses()), new Set([503]))
  issuer = liar.issuer
  asked = 0
  t.same(new Set(await statuses()), new Set([302]))
  t.equal(asked, 1)
  clock.advance(10 * 60_000)
  t.equal((await begin()).answer.status, 302)
  t.equal(asked, 2)
})

test('whoever begins while the provider is away sees a page that says so', async (t) => {
  const { begin, call } = await openAzure(t, () => 'http://127.0.0.1:1')
  const { answer } = await begin()
  t.match(answer, {
    status: 503,
    headers: { 'content-type': 'text/html; charset=utf-8', 'retry-after': '10', 'set-cookie': undefined },
    text: /<p>The Microsoft sign-in service does not answer/,
  })
  t.notMatch(answer.text ?? '', /storage/i)
  t.match(
    await call('GET', '/auth/azure/0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'),
    { status: 404, body: { code: 'not_found' } },
    'what is wrong for good is told as everywhere',
  )
})

test('an answer of the provider that does not end is cut off', async (t) => {
  let sent = 0
  let endless = '/.well-known/openid-configuration'
  const liar = await openLiar(t, ADA, (path, response) => {
    if (path !== endless) return false
    sent = 0
    const write = (): void => {
      do sent += 65_536
      while (response.write(' '.repeat(65_536)))
    }
    response.on('drain', write)
    write()
    return true
  })
  const { begin, back } = await openAzure(t, () => liar.issuer)
  t.equal((await begin()).answer.status, 503)
  // What lies in the buffers of both ends is told as sent.
  t.ok(sent < 32 * 1024 * 1024, `${sent} bytes`)
  for (endless of ['/token', '/jwks']) {
    const { location, cookie } = await begin()
    const asked = new URL(location).searchParams
    liar.told.nonce = asked.get('nonce') ?? ''
    const url = new URL(`${CALLBACK}?code=any&state=${asked.get('state')}`)
    t.match(await back(url, cookie), { error: 'invalid_credentials' }, endless)
    t.ok(sent > 0 && sent < 32 * 1024 * 1024, `${sent} bytes`)
  }
})

test('the issuer is that of the tenant at Microsoft', async (t) => {
  t.equal(azureIssuer(TENANT), `https://login.microsoftonline.com/${TENANT}/v2.0`)
})

test('whoever signs in with their tenant gives their second factor too, and sets one up without a password', async (t) => {
  const world = await withProvider(t)
  const { signInAs, exchange, session, user, owner, call, clock } = world
  await enrol(world, owner)
  const demanded = { requiresSecondFactor: true, secondFactorFrom: clock.now() }
  t.equal((await owner.call('PATCH', '/organization/settings', demanded)).status, 200)
  const own = session(await exchange(await signInAs()), user.email)
  t.match(await own.call('GET', '/user'), { status: 403, body: { code: 'second_factor_required' } })
  const begun = await own.call('POST', '/auth/second-factor', {})
  t.equal(begun.status, 200, 'the password, which they may not have, is not asked for')
  const { secret } = begun.body.data
  const confirmed = await own.call('POST', '/auth/second-factor/confirm', { code: codeAt(secret, clock.now()) })
  t.equal(confirmed.status, 200)
  t.equal((await own.call('GET', '/user')).status, 200)
  const asked = await exchange(await signInAs())
  t.match(asked, { status: 200, body: { challenge: String } })
  t.notOk('token' in asked.body)
  clock.advance(30_000)
  const body = { challenge: asked.body.challenge, code: codeAt(secret, clock.now()) }
  const second = await call('POST', '/auth/login/second-factor', { body })
  t.match(second, { status: 200, body: { token: String, data: { _id: user._id } } })
  const signedIn = session(second, user.email)
  const [code] = confirmed.body.data.recoveryCodes
  clock.advance(10 * 60_000)
  t.equal((await signedIn.call('DELETE', '/auth/second-factor', { code })).status, 400, 'for ten minutes')
})
