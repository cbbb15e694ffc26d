import { type Test, test } from 'tap'
import { openIdentity, type Session } from '../../support/open-identity.ts'
import { enrol } from '../../support/second-factor.ts'
import { until } from '../../support/service.ts'

const HOUR_MS = 3_600_000

const openPrograms = async (t: Test) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  const [hubId] = owner.body.data.hubId as string[]
  const made = async (session: Pick<Session, 'call'>, path: string, body: object) => {
    const answer = await session.call('POST', path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data
  }
  const roleOf = async (name: string, permissions: string[]): Promise<string> =>
    (await made(owner, '/role', { name, permissions }))._id
  const account = (fields: object) => made(owner, '/service-account', { name: 'Program', hubId: [hubId], ...fields })
  return { ...world, owner, hubId, made, roleOf, account }
}

test('a key is told once, kept as a hash, and opens what its role and hubs allow', async (t) => {
  const { owner, program, roleOf, account, hubId, log, made } = await openPrograms(t)
  const { _id: otherHub } = await made(owner, '/hub', { name: 'Other', lat: 50, lng: 20 })
  const roleId = await roleOf('Reader', ['view/hub', 'view/vehicle', 'edit/vehicle'])
  const { key, ...row } = await account({ roleId })
  t.match(key, /^wmk_[\w-]{43}$/)
  const asProgram = program(key)
  t.match(await asProgram('GET', '/vehicles'), { status: 200, body: { total: 0 } })
  t.match(await asProgram('POST', '/vehicle', { name: 'Van', type: 'car', hubId }), { status: 201 })
  t.equal((await asProgram('POST', '/vehicle', { name: 'Van', type: 'car', hubId: otherHub })).status, 400)
  t.equal((await asProgram('GET', '/users')).status, 403)
  const read = (await owner.call('GET', `/service-account/${row._id}`)).body.data
  t.match(read, { name: 'Program', roleId, hubId: [hubId] })
  t.equal(Date.parse(read.lastUsedAt) > 0, true, 'its use is noted')
  t.same(
    Object.keys(read).filter((name) => /key/i.test(name)),
    [],
    'nothing of the key is answered',
  )
  t.same((await owner.call('GET', '/service-accounts')).body.data, [read])
  const [event] = await log.read(`serviceAccount-${row._id}`, 0, 1)
  t.notOk(
    Buffer.from(event.data as Uint8Array)
      .toString()
      .includes(key),
    'nor does the log have it',
  )
  for (const wrong of ['wmk_', `wmk_${'a'.repeat(43)}`, `${key}x`, key.slice(0, -1), key.toUpperCase()])
    t.equal((await program(wrong)('GET', '/vehicles')).status, 401, wrong)
})

test('a hub that an account of some hubs makes is added to its list', async (t) => {
  const { owner, program, roleOf, account, hubId } = await openPrograms(t)
  const { _id, key } = await account({ roleId: await roleOf('Yards', ['view/hub', 'edit/hub']) })
  const asProgram = program(key)
  const made = await asProgram('POST', '/hub', { name: 'Yard', lat: 1, lng: 1 })
  t.match(made, { status: 201, body: { data: { name: 'Yard' } } })
  const hubs = [hubId, made.body.data._id]
  t.same((await owner.call('GET', `/service-account/${_id}`)).body.data.hubId, hubs)
  t.equal((await asProgram('GET', `/hub/${hubs[1]}`)).status, 200)
  const sent = { _id: hubs[1], name: 'Yard', lat: 1, lng: 1 }
  t.equal((await asProgram('POST', '/hub', sent)).status, 201, 'the same again')
  t.equal((await owner.call('GET', '/hubs')).body.total, 2)
})

test('a key that is replaced works a day more, or not at all; what ended or is deleted opens nothing', async (t) => {
  const { owner, login, program, roleOf, account, clock } = await openPrograms(t)
  const roleId = await roleOf('Reader', ['view/hub'])
  const { _id, key: first } = await account({ roleId })
  const path = `/service-account/${_id}`
  const opens = async (key: string) => (await program(key)('GET', '/hubs')).status
  const rotated = await owner.call('POST', `${path}/rotate-key`, {})
  t.match(rotated, { status: 200, body: { data: { key: /^wmk_/ } } })
  const second = rotated.body.data.key
  t.same([await opens(first), await opens(second)], [200, 200])
  clock.advance(24 * HOUR_MS - 1)
  t.equal(await opens(first), 200)
  clock.advance(1)
  t.same([await opens(first), await opens(second)], [401, 200], 'a day later')
  const later = await login(owner.email)
  const third = (await later.call('POST', `${path}/rotate-key`, {})).body.data.key
  const fourth = (await later.call('POST', `${path}/rotate-key`, { now: true })).body.data.key
  t.same([await opens(second), await opens(third), await opens(fourth)], [401, 401, 200], 'now means now')
  const past = new Date(clock.now() - 1).toISOString()
  t.match(await later.call('PATCH', path, { expiresAt: past }), {
    status: 400,
    body: { errors: [{ path: '/expiresAt' }] },
  })
  const expiresAt = new Date(clock.now() + HOUR_MS).toISOString()
  t.match(await later.call('PATCH', path, { expiresAt }), { status: 200, body: { data: { expiresAt } } })
  clock.advance(HOUR_MS)
  t.equal(await opens(fourth), 401, 'after its end')
  t.equal((await later.call('PATCH', path, { expiresAt: null })).status, 200)
  t.equal(await opens(fourth), 200)
  t.equal((await later.call('DELETE', path)).status, 200)
  t.equal(await opens(fourth), 401, 'deleted')
})

test('nobody gives a program more than they have, and a program gives nobody more than it has', async (t) => {
  const { owner, program, roleOf, roleId: keyOf, account, hubId, made, clock } = await openPrograms(t)
  const { _id: otherHub } = await made(owner, '/hub', { name: 'Other', lat: 50, lng: 20 })
  const permissions = ['view/user', 'edit/user', 'view/hub', 'view/role', 'edit/role']
  const editor = await roleOf('Editor', permissions)
  const plain = await roleOf('Plain', ['view/user'])
  const wide = await roleOf('Wide', ['view/user', 'view/audit-log'])
  const all = await roleOf('All', ['view/user', 'view/all-hubs'])
  const { _id, key } = await account({ roleId: editor })
  const far = await account({ roleId: plain, hubId: [otherHub] })
  const asProgram = program(key)
  const refused = { status: 403, body: { code: 'forbidden' } }
  const ownerRole = await keyOf(owner, 'owner')
  for (const roleId of [wide, all, ownerRole, await keyOf(owner, 'admin')]) {
    t.match(await asProgram('PATCH', `/service-account/${_id}`, { roleId }), refused, 'itself')
    t.match(await asProgram('POST', '/service-account', { name: 'P', roleId, hubId: [hubId] }), refused, 'another one')
    t.match(await asProgram('POST', '/user', { name: 'P', email: 'p@example.com', roleId }), refused, 'a person')
  }
  t.match(await asProgram('PATCH', `/role/${editor}`, { permissions: [...permissions, 'view/audit-log'] }), refused)
  t.equal((await asProgram('PATCH', `/service-account/${_id}`, { hubId: [hubId, otherHub] })).status, 400)
  for (const [method, path] of [
    ['POST', `/service-account/${far._id}/rotate-key`],
    ['PATCH', `/service-account/${far._id}`],
    ['DELETE', `/service-account/${far._id}`],
  ] as const)
    t.match(
      await asProgram(method, path, method === 'PATCH' ? { name: 'Mine' } : undefined),
      { status: 404 },
      `${method} ${path}`,
    )
  t.match(await asProgram('POST', '/service-account', { name: 'Helper', roleId: plain, hubId: [hubId] }), {
    status: 201,
  })

  const expiresAt = new Date(clock.now() + HOUR_MS).toISOString()
  const later = new Date(clock.now() + 2 * HOUR_MS).toISOString()
  const ending = await account({ roleId: editor, expiresAt })
  const asEnding = program(ending.key)
  for (const end of [null, later])
    t.match(
      await asEnding('PATCH', `/service-account/${ending._id}`, { expiresAt: end }),
      refused,
      'it ends when it ends',
    )
  t.match(await asEnding('POST', '/service-account', { name: 'Heir', roleId: plain, hubId: [hubId] }), refused)
  t.match(await asEnding('POST', `/service-account/${_id}/rotate-key`, {}), refused, 'the key of one that lasts')
  t.match(await asEnding('POST', '/service-account', { name: 'Heir', roleId: plain, hubId: [hubId], expiresAt }), {
    status: 201,
  })
})

test('a program signs in nowhere and has nothing of a person', async (t) => {
  const { owner, program, roleId, account } = await openPrograms(t)
  const { key } = await account({ roleId: await roleId(owner, 'owner') })
  const asProgram = program(key)
  for (const [method, path, body] of [
    ['GET', '/user'],
    ['PATCH', '/user', { name: 'X' }],
    ['POST', '/auth/refresh'],
    ['POST', '/auth/logout'],
    ['GET', '/auth/sessions'],
    ['GET', '/auth/my-organizations'],
    ['GET', '/auth/second-factor'],
    ['POST', '/auth/switch-organization', { organizationId: owner.body.data.organizationId, password: 'x' }],
    ['DELETE', '/organization', { password: 'x' }],
    ['POST', '/organization', { name: 'Another one' }],
  ] as const)
    t.match(
      await asProgram(method, path, body),
      { status: 403, body: { message: 'This is for people who sign in; a service account does not.' } },
      `${method} ${path}`,
    )
  t.match(await asProgram('GET', '/notifications'), { status: 200, body: { total: 0 } })
  t.match(await asProgram('GET', '/tasks?assigneeId=me'), { status: 200, body: { total: 0 } })
})

test('a change of role, hubs or existence is told to open connections, and is what counts at once', async (t) => {
  const { owner, program, roleOf, account, accessChanges } = await openPrograms(t)
  const [first, second] = [await roleOf('First', ['view/hub']), await roleOf('Second', ['view/team'])]
  const { _id, key } = await account({ roleId: first })
  const told = () => accessChanges.filter(({ userId }) => userId === _id).length
  const asProgram = program(key)
  t.same([(await asProgram('GET', '/hubs')).status, (await asProgram('GET', '/teams')).status], [200, 403])
  t.match(await owner.call('DELETE', `/role/${first}`), { status: 409 }, 'a role that it has is not deleted')
  t.equal((await owner.call('DELETE', `/role/${first}?replaceWith=${second}`)).status, 200)
  t.same([(await asProgram('GET', '/hubs')).status, (await asProgram('GET', '/teams')).status], [403, 200])
  const before = told()
  t.equal((await owner.call('DELETE', `/service-account/${_id}`)).status, 200)
  t.equal((await asProgram('GET', '/teams')).status, 401)
  await until('sockets to hear of it', () => told() > before)
})

test('no second factor is asked of a program', async (t) => {
  const { owner, program, roleOf, account, ...world } = await openPrograms(t)
  const { key } = await account({
    roleId: await roleOf('Reader', ['view/hub', 'edit/organization', 'view/organization']),
  })
  const demanded = { requiresSecondFactor: true, secondFactorFrom: world.clock.now() }
  t.equal((await program(key)('PATCH', '/organization/settings', demanded)).status, 409, 'nor may it demand one')
  await enrol(world, owner)
  t.equal((await owner.call('PATCH', '/organization/settings', demanded)).status, 200)
  t.equal((await program(key)('GET', '/hubs')).status, 200)
})
