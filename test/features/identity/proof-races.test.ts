import { test } from 'tap'
import { issuedToken, openIdentity, PASSWORD } from '../../support/open-identity.ts'

const NEW = 'Another-horse-8-battery'
const NETWORK = '203.0.113.9'

test('a network is known no more once somebody else proves that the address is theirs', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login, clock, context } = world
  const email = 'owner@example.com'
  await signup({ email })
  await login(email, PASSWORD, { address: NETWORK })
  const isKnown = (network = NETWORK) => context.throttle.guard(email, network, clock.now()).isKnown()
  t.ok(await isKnown(), 'while nobody proved anything')

  const verification = { token: await issuedToken(world, email, 'verification'), password: NEW }
  const verified = await call('POST', '/auth/verify-email', { address: '198.51.100.1', body: verification })
  t.equal(verified.status, 200)
  t.notOk(await isKnown(), 'the network of whoever registered the address')
  t.ok(await isKnown('198.51.100.1'), 'that of its owner')

  await login(email, NEW, { address: NETWORK })
  t.ok(await isKnown(), 'the owner may be there too')
  const person = await context.people.findByEmail(email)
  const state = { ...person?.state, proofs: (person?.state.proofs ?? 0) + 1 }
  await context.throttle.noteProof(email, { identityId: person?.identityId ?? '', proofs: state.proofs }, clock.now())
  t.notOk(await isKnown(), 'nor after a proof of somebody verified')
  await context.throttle.noteLogin(
    email,
    NETWORK,
    { identityId: person?.identityId ?? '', proofs: state.proofs - 1 },
    clock.now(),
  )
  t.notOk(await isKnown(), 'a login that was under way')
  await context.throttle.noteLogin(email, NETWORK, { identityId: 'another', proofs: 9 }, clock.now())
  t.notOk(await isKnown(), 'a login of an identity that had the address before')
})

test('an undo at the moment in which an invitation is accepted leaves no session', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, context, roleId } = world
  const [ada, host] = [await signup({ email: 'ada@example.com' }), await signup()]
  const verified = { token: await issuedToken(world, ada.email, 'verification'), password: PASSWORD }
  const session = world.session(await call('POST', '/auth/verify-email', { body: verified }), ada.email)
  await session.call('PATCH', '/user', { email: 'thief@example.com', currentPassword: PASSWORD })
  const undo = { token: await issuedToken(world, ada.email, 'emailUndo'), password: NEW }
  const change = { token: await issuedToken(world, ada.email, 'emailChange') }
  t.equal((await call('POST', '/auth/verify-email', { body: change })).status, 200)
  await host.call('POST', '/user/invite', {
    email: 'thief@example.com',
    roleId: await roleId(host, 'planner'),
  })
  const { identityId = '' } = (await context.people.findByEmail('thief@example.com')) ?? {}
  const invitation = { token: await issuedToken(world, 'thief@example.com', 'invitation'), password: PASSWORD }

  const begin = context.sessions.begin.bind(context.sessions)
  let undone: number | undefined
  context.sessions.begin = async (...session) => {
    context.sessions.begin = begin
    undone = (await call('POST', '/auth/reset-password', { body: undo })).status
    return begin(...session)
  }
  t.equal((await call('POST', '/auth/accept-invitation', { body: invitation })).status, 401)
  t.equal(undone, 200)
  t.same(await context.sessions.live(identityId, world.clock.now()), [])
})

test('a sign-up that is repeated once the owner of the address has come begins no session', async (t) => {
  const world = await openIdentity(t)
  const { call, context } = world
  const body = {
    name: 'Stranger',
    email: 'owner@example.com',
    password: PASSWORD,
    organizationName: 'Taken',
    hubName: 'Main',
  }
  const begin = context.sessions.begin.bind(context.sessions)
  context.sessions.begin = async (...session) => {
    context.sessions.begin = begin
    const owner = { token: await issuedToken(world, body.email, 'verification'), password: NEW }
    await call('POST', '/auth/verify-email', { body: owner })
    return begin(...session)
  }
  const answer = await call('POST', '/auth/signup', { body: { ...body, hubLat: 1, hubLng: 1 } })
  t.equal(answer.status, 401)
  const { identityId = '' } = (await context.people.findByEmail(body.email)) ?? {}
  t.equal((await context.sessions.live(identityId, world.clock.now())).length, 1, "the owner's alone")
})
