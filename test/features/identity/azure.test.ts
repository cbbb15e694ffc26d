import { test, type Test } from 'tap'
import { AzureProvider, azureIssuer } from '../../../src/features/identity/azure-provider.ts'
import { azureRoutes } from '../../../src/features/identity/azure-routes.ts'
import { identityContext } from '../../../src/features/identity/context.ts'
import { activeIntegration } from '../../../src/features/integrations/app-integration.ts'
import { type Accounts, CLIENT, follow, type Lie, openLiar, openProvider } from '../../support/oidc.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'
import { codeAt, enrol } from '../../support/second-factor.ts'

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const PUBLIC_URL = 'https://waymark.example.com'
const CALLBACK = `${PUBLIC_URL}/api/v3/auth/azure/callback`
const ADA = { email: 'ada@example.com', xms_edov: true, tid: TENANT }

/** An organization with an integration, whose tenant is a provider of the test. */
const open = async (t: Test, issuer: () => string) => {
  const world = await openIdentity(t, {}, (services) =>
    azureRoutes(identityContext(services, { signup: 'open', tokenTtlMs: 86_400_000 }), {
      provider: new AzureProvider(issuer),
      integrationOf: (id) => activeIntegration(services, id),
      publicUrl: PUBLIC_URL,
    }),
  )
  const owner = await world.signup()
  const body = { name: 'Sign-in', tenantId: TENANT, ...CLIENT }
  const { _id } = (await owner.call('POST', '/app-integration', body)).body.data
  const person = {
    name: 'Ada',
    email: 'Ada@example.com',
    password: PASSWORD,
    roleId: await world.roleId(owner, 'planner'),
  }
  const user = (await owner.call('POST', '/user', person)).body.data
  /** Begins; answers where the browser is sent, and its cookie. */
  const begin = async () => {
    const answer = await world.call('GET', `/auth/azure/${_id}`)
    return { location: answer.headers.location, cookie: answer.headers['set-cookie']?.split(';')[0] ?? '', answer }
  }
  const back = async (url: URL, cookie: string): Promise<{ code?: string; error?: string }> => {
    const { status, headers } = await world.call('GET', `/auth/azure/callback${url.search}`, { headers: { cookie } })
    t.equal(status, 302)
    return Object.fromEntries(new URLSearchParams(headers.location.replace('/#', '')))
  }
  const exchange = (code = '') => world.call('POST', '/auth/exchange', { body: { code } })
  return { ...world, owner, user, integrationId: _id as string, begin, back, exchange }
}

const withProvider = async (t: Test, accounts: Accounts = { ada: ADA }) => {
  const provider = await openProvider(t, CALLBACK, accounts)
  const world = await open(t, () => provider.issuer)
  const signIn = async (as = 'ada') => {
    provider.signIn.as = as
    const { location, cookie } = await world.begin()
    const url = await follow(location, provider.issuer)
    return { url, cookie, ...(await world.back(url, cookie)) }
  }
  return { ...world, ...provider, signInAs: signIn }
}

test('a user of the organization signs in with their tenant, by a code that serves once and for a minute', async (t) => {
  const { begin, signInAs, exchange, user, clock, session, back } = await withProvider(t)
  const { location, answer } = await begin()
  t.match(answer, { status: 302, headers: { 'set-cookie': /HttpOnly; SameSite=Lax; Secure$/ } })
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
  const signedIn = await exchange(first.code)
  t.match(signedIn, { status: 200, body: { token: String, expires_in: 86_400, data: { _id: user._id } } })
  t.match(await session(signedIn, user.email).call('GET', '/user'), { status: 200, body: { data: { name: 'Ada' } } })
  t.match(await exchange(first.code), { status: 401, body: { code: 'invalid_credentials' } }, 'a code serves once')
  t.match(await exchange(`${first.code}x`), { status: 401 }, 'however it is written')
  t.match(await back(first.url, first.cookie), { error: 'invalid_credentials' }, 'and so does what came back')
  first.url.searchParams.set('state', `${first.url.searchParams.get('state')}x`)
  t.match(await back(first.url, first.cookie), { error: 'invalid_credentials' })
  const late = await signInAs()
  clock.advance(60_001)
  t.match(await exchange(late.code), { status: 401 }, 'a code of over a minute')
  t.match(await exchange('made up'), { status: 401 })
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
  t.equal((await exchange(early.code)).status, 401, 'nor by a code from before')
  await owner.call('PATCH', `/app-integration/${integrationId}`, { isActive: false })
  t.equal((await call('GET', `/auth/azure/${integrationId}`)).status, 404)
  t.equal((await call('GET', `/auth/azure/${user._id}`)).status, 404)
})

test('whoever registered an address before its owner signed in keeps nothing', async (t) => {
  const { signInAs, exchange, login, user, session } = await withProvider(t)
  const squatter = await login('ada@example.com')
  t.equal((await squatter.call('GET', '/user')).status, 200)
  const { code } = await signInAs()
  const signedIn = session(await exchange(code), user.email)
  t.equal((await squatter.call('GET', '/user')).status, 401, 'the session has ended')
  await t.rejects(login('ada@example.com'), /401/, 'the password is gone')
  t.equal((await signedIn.call('GET', '/user')).status, 200)
  const again = session(await exchange((await signInAs()).code), user.email)
  t.equal((await again.call('GET', '/user')).status, 200)
  t.equal((await signedIn.call('GET', '/user')).status, 200, 'a verified owner keeps their sessions')
})

test('an id token of another issuer, audience, nonce, tenant, time or key is worth nothing', async (t) => {
  const liar = await openLiar(t, ADA)
  const { begin, back } = await open(t, () => liar.issuer)
  const attempt = async (lie: Lie) => {
    const { location, cookie } = await begin()
    const asked = new URL(location).searchParams
    Object.assign(liar.told, { lie, nonce: asked.get('nonce') ?? '' })
    return back(new URL(`${CALLBACK}?code=any&state=${asked.get('state')}`), cookie)
  }
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
    key: { kid: 'another' },
    unsigned: { isUnsigned: true },
  }
  for (const [name, lie] of Object.entries(lies)) t.match(await attempt(lie), { error: 'invalid_credentials' }, name)
})

test('however many begin, the provider is asked once in ten minutes; one that does not answer is asked again', async (t) => {
  const liar = await openLiar(t, ADA)
  let asked = 0
  let issuer = 'http://127.0.0.1:1'
  const { begin, clock } = await open(t, () => {
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

test('the issuer is that of the tenant at Microsoft', async (t) => {
  t.equal(azureIssuer(TENANT), `https://login.microsoftonline.com/${TENANT}/v2.0`)
})

test('whoever signs in with their tenant gives their second factor too, and sets one up without a password', async (t) => {
  const world = await withProvider(t)
  const { signInAs, exchange, session, user, owner, call, clock } = world
  await enrol(world, owner)
  t.equal((await owner.call('PATCH', '/organization/settings', { requiresSecondFactor: true })).status, 200)
  const own = session(await exchange((await signInAs()).code), user.email)
  t.match(await own.call('GET', '/user'), { status: 403, body: { code: 'second_factor_required' } })
  const begun = await own.call('POST', '/auth/second-factor', {})
  t.equal(begun.status, 200, 'the password, which they may not have, is not asked for')
  const { secret } = begun.body.data
  const confirmed = await own.call('POST', '/auth/second-factor/confirm', { code: codeAt(secret, clock.now()) })
  t.equal(confirmed.status, 200)
  t.equal((await own.call('GET', '/user')).status, 200)
  const asked = await exchange((await signInAs()).code)
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
