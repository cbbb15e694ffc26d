import { test } from 'tap'
import { enrol } from '../../support/second-factor.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

const ORIGIN = 'https://waymark.example.com'
const PAGE = { origin: ORIGIN, host: 'waymark.example.com', 'waymark-client': 'console' }
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

type World = Awaited<ReturnType<typeof openIdentity>>

const cookieOf = (header: string | undefined): string => header?.split(';')[0] ?? ''

/** Somebody who signed in with a cookie, as their browser is. */
const inBrowser = async (world: World, email: string, password = PASSWORD) => {
  const answer = await world.call('POST', '/auth/login', { body: { email, password, session: 'cookie' } })
  const cookie = cookieOf(answer.headers['set-cookie'])
  const refresh = (body?: object, headers: object = {}) =>
    world.call('POST', '/auth/refresh', { body, headers: { ...PAGE, cookie, ...headers } })
  return { answer, cookie, refresh, tab: (from = answer) => world.session(from, email) }
}

test('a browser keeps its session by a cookie that gets tokens of 15 minutes, in several tabs', async (t) => {
  const world = await openIdentity(t)
  const ada = await world.signup()
  const { answer, refresh, tab } = await inBrowser(world, ada.email)
  t.match(answer, { status: 200, body: { expires_in: 900, data: { email: ada.email } } })
  t.match(
    answer.headers['set-cookie'],
    /^waymark-session=[\w.~+/=-]+; Path=\/api\/v3\/auth; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure$/,
  )
  const first = tab()
  const second = tab(await refresh())
  t.not(second.token, first.token)
  for (const one of [first, second]) t.equal((await one.call('GET', '/user')).status, 200, 'no tab ends another')
  const { data } = (await second.call('GET', '/auth/sessions')).body
  t.match(data, [{ isCurrent: true }, { isCurrent: false }], 'one session for the browser, and the sign-up')
  t.equal(data.length, 2)

  world.clock.advance(15 * MINUTE_MS)
  t.equal((await first.call('GET', '/user')).status, 401)
  t.equal((await tab(await refresh()).call('GET', '/user')).status, 200)
  for (let i = 0; i < 4; i++) {
    world.clock.advance(29 * DAY_MS)
    t.equal((await refresh()).status, 200, '30 days from its last use')
  }
  world.clock.advance(31 * DAY_MS)
  t.equal((await refresh()).status, 401)
  t.notOk(
    (await world.call('POST', '/auth/login', { body: { email: ada.email, password: PASSWORD } })).headers['set-cookie'],
  )
})

test('only a page of the same origin that says what it is gets a token for the cookie', async (t) => {
  const world = await openIdentity(t)
  const ada = await world.signup()
  const { refresh, cookie } = await inBrowser(world, ada.email)
  for (const headers of [
    { origin: 'https://evil.example.com' },
    { origin: 'https://waymark.example.com.evil.com' },
    { origin: 'http://waymark.example.com:8080' },
    { origin: 'null' },
    { origin: '' },
    { 'waymark-client': '' },
    { 'waymark-client': 'other' },
    { cookie: '' },
    { cookie: 'waymark-session=' },
    { cookie: `${cookie.slice(0, -20)}AAAA${cookie.slice(-16)}` },
    { cookie: cookie.replace('waymark-session', 'waymark-browser') },
  ])
    t.equal((await refresh({}, headers)).status, 401, JSON.stringify(headers))
  t.equal((await refresh({}, { origin: 'http://10.0.0.7:8080', host: '10.0.0.7:8080' })).status, 200)
  t.equal((await world.call('GET', '/user', { headers: { ...PAGE, cookie } })).status, 401, 'it opens nothing else')
})

test('the session of a browser ends with logout, a new password, a proof, and by itself in the list', async (t) => {
  const world = await openIdentity(t)
  const ada = await world.signup()
  const ends: [string, (tab: typeof ada) => Promise<{ status: number; headers: object }>][] = [
    ['logout', (tab) => tab.call('POST', '/auth/logout', undefined, { headers: { cookie: 'waymark-session=x' } })],
    [
      'the list',
      async (tab) => {
        const { data } = (await tab.call('GET', '/auth/sessions')).body
        return tab.call('DELETE', `/auth/session/${data.find((one: { isCurrent: boolean }) => one.isCurrent)._id}`)
      },
    ],
    ['a new password', (tab) => tab.call('PATCH', '/user', { password: 'Another-9-horse', currentPassword: PASSWORD })],
  ]
  for (const [name, end] of ends) {
    const { refresh, tab } = await inBrowser(world, ada.email)
    const other = tab(await refresh())
    const elsewhere = await world.login(ada.email)
    const ended = await end(tab())
    t.equal(ended.status, 200, name)
    if (name === 'logout') t.match(ended.headers, { 'set-cookie': /^waymark-session=; .*Max-Age=0;/ })
    t.equal((await refresh()).status, 401, `${name}: the cookie`)
    t.equal((await other.call('GET', '/user')).status, 401, `${name}: the token of another tab`)
    t.equal((await elsewhere.call('GET', '/user')).status, name === 'a new password' ? 401 : 200, `${name}: elsewhere`)
  }
})

test('the cookie stands for the person: any of their organizations, and none where they are no longer', async (t) => {
  const world = await openIdentity(t)
  const [ada, other, foreign] = [await world.signup(), await world.signup(), await world.signup()]
  const made = { organizationName: 'Second', hubName: 'H', hubLat: 1, hubLng: 1 }
  const second = await ada.call('POST', '/organization', made)
  const { refresh, tab, answer } = await inBrowser(world, ada.email)
  t.equal(answer.body.data.organizationId, second.body.data.organizationId)
  const first = await refresh({ organizationId: ada.body.data.organizationId })
  t.equal(first.body.data.organizationId, ada.body.data.organizationId)
  t.equal((await refresh()).body.data.organizationId, second.body.data.organizationId, 'the most recent is as it was')
  t.equal((await refresh({ organizationId: foreign.body.data.organizationId })).status, 404)
  const switching = { organizationId: ada.body.data.organizationId, password: PASSWORD }
  const switched = await tab().call('POST', '/auth/switch-organization', switching)
  t.match(switched, { status: 200, body: { expires_in: 900 } }, 'it stays a token of the browser')
  t.equal((await refresh()).body.data.organizationId, ada.body.data.organizationId)
  const renewed = await tab(switched).call('POST', '/auth/refresh')
  t.match(renewed, { status: 200, body: { expires_in: 900 } })
  const wrong = { organizationId: second.body.data.organizationId }
  t.match(await tab(renewed).call('POST', '/auth/refresh', wrong), {
    status: 400,
    body: { errors: [{ path: '/organizationId' }] },
  })
  t.equal((await other.call('GET', '/user')).status, 200)
})

test('a second factor, and switching with a token of a program, begin the session of a browser, too', async (t) => {
  const world = await openIdentity(t)
  const ada = await world.signup()
  const plain = await world.login(ada.email)
  const switching = { organizationId: ada.body.data.organizationId, password: PASSWORD, session: 'cookie' }
  const switched = await plain.call('POST', '/auth/switch-organization', switching)
  t.match(switched.headers['set-cookie'], /^waymark-session=.+Max-Age=2592000/)
  const factor = await enrol(world, world.session(switched, ada.email))
  const { answer } = await inBrowser(world, ada.email)
  t.notOk(answer.headers['set-cookie'], 'a challenge is no session yet')
  const body = { challenge: answer.body.challenge, code: factor.recoveryCodes[0], session: 'cookie' }
  const stepped = await world.call('POST', '/auth/login/second-factor', { body })
  t.match(stepped, { status: 200, headers: { 'set-cookie': /^waymark-session=.+Max-Age=2592000/ } })
})

test('the log keeps a browser that has been in use for months in few events', async (t) => {
  const world = await openIdentity(t)
  const ada = await world.signup()
  const { refresh } = await inBrowser(world, ada.email)
  for (let i = 0; i < 300; i++) {
    world.clock.advance(12 * 60 * MINUTE_MS)
    const answer = await refresh()
    if (answer.status !== 200) t.fail(`${i}: ${answer.status}`)
  }
  const { identityId = '' } = (await world.context.people.findByEmail(ada.email)) ?? {}
  const events = await world.log.read(`sessions-${identityId}`, 0, 10_000)
  t.ok(events.length < 300, `${events.length} events`)
  t.equal((await world.context.sessions.live(identityId, world.clock.now())).length, 2)
})
