import { test, type Test } from 'tap'
import type { LinkKind } from '../../../src/features/identity/events.ts'
import { isOpen, linkToken, newLink } from '../../../src/features/identity/links/links.ts'
import { formatTime } from '../../../src/kit/http/request-context.ts'
import { ADA, withProvider } from '../../support/azure-world.ts'
import { PASSWORD, type Session } from '../../support/open-identity.ts'
import { enrol } from '../../support/second-factor.ts'

const NEW = 'Another-horse-8-battery'

type World = Awaited<ReturnType<typeof openWorld>>
interface Begun {
  name: string
  userId: string
  identityId: string
  session: Session
  factor?: { code(): string }
  code?: { code?: string; cookie: string }
  challenge?: string
}

/** Begins all that somebody can begin about an identity, and looks what of it is still good. */
const openWorld = async (t: Test, names: readonly string[]) => {
  const account = (name: string) => [name, { ...ADA, email: `${name}@example.com` }]
  const world = await withProvider(t, Object.fromEntries(names.map(account)))
  const { owner, context, clock, call, keyring, signInAs, exchange, login } = world
  const hosts = [await world.signup(), await world.signup()]
  const ids = { next: () => crypto.randomUUID() }
  const origin = { ids, metadata: {} }

  const linksOf = async (identityId: string) =>
    ((await context.people.load(identityId))?.state.links ?? []).filter((link) => isOpen(link, formatTime(clock.now())))
  const tokenOf = async (identityId: string, kind: LinkKind): Promise<string> => {
    const link = (await linksOf(identityId)).find((one) => one.kind === kind)
    if (link === undefined) throw new Error(`no ${kind}`)
    return linkToken(keyring, identityId, link.linkId)
  }

  const begin = async (name: string, isVerified: boolean, hasFactor: boolean): Promise<Begun> => {
    const email = `${name}@example.com`
    const roleId = await world.roleId(owner, 'planner')
    const { _id: userId } = (await owner.call('POST', '/user', { name, email, password: PASSWORD, roleId })).body.data
    const { identityId = '' } = (await context.people.findByEmail(email)) ?? {}
    const at = formatTime(clock.now())
    if (isVerified) await context.people.command(identityId, { type: 'verifyEmail', email, at }, origin)
    const session = await login(email)
    for (const host of hosts)
      await host.call('POST', '/user/invite', { email, roleId: await world.roleId(host, 'planner') })
    const factor = hasFactor ? await enrol(world, session) : undefined
    if (!hasFactor) await session.call('POST', '/auth/second-factor', { password: PASSWORD })
    const moved = `${name}-moved@example.com`
    t.equal((await session.call('PATCH', '/user', { email: moved, currentPassword: PASSWORD })).status, 200)
    for (const kind of ['reset', 'verification', 'reopening'] as const) {
      const link = newLink({ linkId: ids.next(), kind, email }, clock.now())
      await context.people.command(identityId, { type: 'issueLink', link, at: link.at }, origin)
    }
    const code = isVerified ? await signInAs(name) : undefined
    const { challenge } = (await call('POST', '/auth/login', { body: { email, password: PASSWORD } })).body
    return { name, userId, identityId, session, factor, code, challenge }
  }

  const alive = async ({ userId, identityId, session, factor, code, challenge }: Begun): Promise<string[]> => {
    const state = (await context.people.load(identityId))?.state
    const found = (await linksOf(identityId)).map(({ kind }) => `link: ${kind}`)
    if ((await session.call('GET', '/user')).status === 200) found.push('session')
    if ((await owner.call('GET', `/user/${userId}`)).body.data.pendingEmail !== undefined) found.push('pendingEmail')
    if (code !== undefined && (await exchange(code)).status === 200) found.push('code of a provider')
    const body = { challenge, code: factor?.code() }
    if (challenge && (await call('POST', '/auth/login/second-factor', { body })).status === 200) found.push('challenge')
    if (state?.factor !== undefined) found.push('second factor')
    if (state?.offered !== undefined) found.push('offered factor')
    return [...new Set(found)].sort()
  }
  return { ...world, hosts, tokenOf, begin, alive }
}

const ALL_LINKS = ['emailChange', 'emailUndo', 'invitation', 'reopening', 'reset', 'verification'].map(
  (kind) => `link: ${kind}`,
)
const LEFT = ['link: emailUndo', 'link: invitation']

const followed = (path: string, kind: LinkKind, password?: string) => async (world: World, begun: Begun) => {
  const body = { token: await world.tokenOf(begun.identityId, kind), password }
  return (await world.call('POST', path, { body })).status
}

/** Every way in which somebody proves who they are. */
const PROOFS: { [name: string]: { run(world: World, begun: Begun): Promise<number>; left?: string[] } } = {
  verification: { run: followed('/auth/verify-email', 'verification', NEW) },
  invitation: { run: followed('/auth/accept-invitation', 'invitation', NEW) },
  provider: { run: async (world, { name }) => ((await world.signInAs(name)).code === undefined ? 401 : 200) },
  reset: { run: followed('/auth/reset-password', 'reset', NEW) },
  reopening: { run: followed('/auth/reset-password', 'reopening', NEW) },
  change: { run: followed('/auth/verify-email', 'emailChange', NEW) },
  undo: { run: followed('/auth/reset-password', 'emailUndo', NEW), left: ['link: invitation'] },
  undoAndSignIn: { run: followed('/auth/verify-email', 'emailUndo', NEW), left: ['link: invitation'] },
}

for (const hasFactor of [true, false]) {
  const begunFactor = hasFactor ? ['second factor'] : ['offered factor']

  test(`the first proof of an address ends all that was begun, ${hasFactor ? 'with' : 'without'} a factor`, async (t) => {
    const world = await openWorld(t, Object.keys(PROOFS))
    const control = await world.begin('control', false, hasFactor)
    const challenge = hasFactor ? ['challenge'] : []
    const begun = [...ALL_LINKS, 'session', 'pendingEmail', ...challenge, ...begunFactor].sort()
    t.same(await world.alive(control), begun, 'without a proof all of it is good')
    for (const [name, { run, left = LEFT }] of Object.entries(PROOFS)) {
      const person = await world.begin(name, false, hasFactor)
      t.equal(await run(world, person), 200, name)
      t.same(await world.alive(person), left, name)
    }
  })
}

test('a password by a mailed link ends all that was begun by somebody who is verified, but their second factor', async (t) => {
  const world = await openWorld(t, ['control', ...Object.keys(PROOFS)])
  const all = [...ALL_LINKS, 'session', 'pendingEmail', 'challenge', 'code of a provider', 'second factor'].sort()
  t.same(await world.alive(await world.begin('control', true, true)), all, 'without a proof all of it is good')
  for (const name of ['reset', 'reopening', 'undo', 'undoAndSignIn']) {
    const person = await world.begin(name, true, true)
    t.equal(await PROOFS[name].run(world, person), 200, name)
    t.same(await world.alive(person), [...(PROOFS[name].left ?? LEFT), 'second factor'], name)
  }
  const person = await world.begin('change', true, true)
  t.equal(await followed('/auth/verify-email', 'emailChange')(world, person), 200)
  t.same(await world.alive(person), [...LEFT, 'second factor'], 'a new address')
  const invited = await world.begin('invitation', true, true)
  t.equal(await followed('/auth/accept-invitation', 'invitation', PASSWORD)(world, invited), 200)
  t.same(await world.alive(invited), all, 'an invitation that somebody verified accepts proves nothing new')
})

test('what is decided before a proof is not written after it', async (t) => {
  const world = await openWorld(t, ['late'])
  const { context, clock } = world
  const begun = await world.begin('late', false, false)
  const { identityId } = begun
  const proofs = (await context.people.load(identityId))?.state.proofs
  t.equal(await followed('/auth/reset-password', 'reset', NEW)(world, begun), 200)
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const at = formatTime(clock.now())
  const link = newLink({ linkId: crypto.randomUUID(), kind: 'emailChange', email: 'late@example.com' }, clock.now())
  const offer = { factorId: crypto.randomUUID(), sealedSecret: 'x', expiresAt: at }
  for (const command of [
    { type: 'changePassword', passwordHash: 'x', proofs, at },
    { type: 'issueLink', link, proofs, at },
    { type: 'offerFactor', ...offer, proofs, at },
  ] as const)
    await t.rejects(context.people.command(identityId, command, origin), { code: 'unauthenticated' }, command.type)
  await world.login('late@example.com', NEW)
})
