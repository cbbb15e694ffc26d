import { randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import type { Method } from '../../src/kit/http/route.ts'
import type { CallAnswer } from '../support/call-route.ts'
import { dyingLog, Killed } from '../support/dying-log.ts'
import { openIdentity, PASSWORD, type Session } from '../support/open-identity.ts'
import { until } from '../support/service.ts'
import { halves } from './office-truth.ts'

type World = Awaited<ReturnType<typeof openIdentity>>

interface Request {
  /** Absent for what everybody may call. */
  by?: Session
  method: Method
  url: string
  body?: object
}

interface Walk {
  /** As the route table has it. */
  operationId: string
  what: string
  /** Makes what has to be there, and answers the request, and the same wish by somebody else. */
  prepare(
    world: World,
  ): Promise<{ request: Request; other: Request; check(t: Test, world: World, last: CallAnswer): Promise<void> }>
}

const hubFields = { hubName: 'Main', hubLat: 52.2, hubLng: 21 }

const listed = async (session: Session, path: string, by: string): Promise<number> =>
  (await session.call('GET', `${path}?${by}`)).body.total

let prepared = 0

/** Two owners, a team, and a planner in it who is at home elsewhere too. */
const office = async (world: World) => {
  const n = ++prepared
  const first = await world.signup({ email: `first${n}@example.com` })
  const [owner, planner] = [await world.roleId(first, 'owner'), await world.roleId(first, 'planner')]
  const hubId = first.body.data.hubId as string[]
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await first.call('POST', path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data._id
  }
  const second = await made('/user', {
    name: 'Second',
    email: `second${n}@example.com`,
    password: PASSWORD,
    roleId: owner,
    hubId,
  })
  const teamIds = [
    await made('/team', { name: 'One', hubId: hubId[0], userIds: [second] }),
    await made('/team', { name: 'Two', hubId: hubId[0], userIds: [] }),
  ]
  return { first, second, other: await world.login(`second${n}@example.com`), owner, planner, hubId, teamIds, made }
}

const WALKS: Walk[] = [
  {
    operationId: 'signup',
    what: 'a signup',
    prepare: async () => {
      const email = `new${++prepared}@example.com`
      const body = { name: 'New', email, password: PASSWORD, organizationName: 'New ones', ...hubFields }
      const request: Request = { method: 'POST', url: '/auth/signup', body }
      return {
        request,
        other: request,
        check: async (t, world) => {
          const session = await world.login(email)
          t.equal((await session.call('GET', '/auth/my-organizations')).body.data.length, 1)
        },
      }
    },
  },
  {
    operationId: 'createOrganization',
    what: 'a further organization',
    prepare: async (world) => {
      const { first, made } = await office(world)
      await made('/role', { name: 'Custom', permissions: ['view/hub'] })
      const body = { organizationName: 'Further', ...hubFields, copyDataFromFirstOrg: true }
      const request: Request = { by: first, method: 'POST', url: '/organization', body }
      return {
        request,
        other: request,
        check: async (t, after) => {
          const session = await after.login(first.email)
          t.ok((await session.call('GET', '/auth/my-organizations')).body.data.length >= 2)
          t.equal(await listed(session, '/roles', 'name=Custom'), 1)
          t.equal((await session.call('GET', '/hubs')).body.total, 2)
        },
      }
    },
  },
  {
    operationId: 'createUser',
    what: 'a user who is new and an owner',
    prepare: async (world) => {
      const { first, other, owner, hubId, teamIds } = await office(world)
      const email = `new${++prepared}@example.com`
      const body = { name: 'New', email, password: PASSWORD, roleId: owner, hubId, teamIds }
      return {
        request: { by: first, method: 'POST', url: '/user', body },
        other: { by: other, method: 'POST', url: '/user', body },
        check: async (t, after) => {
          t.equal(await listed(await after.login(first.email), '/users', `email=${email}`), 1)
          const { body: mine } = await (await after.login(email)).call('GET', '/user')
          t.same([...mine.data.teamIds].sort(), [...teamIds].sort())
        },
      }
    },
  },
  {
    operationId: 'createUser',
    what: 'a user who has an identity',
    prepare: async (world) => {
      const { first, other, planner, hubId, teamIds } = await office(world)
      const guest = await world.signup({ email: `guest${++prepared}@example.com` })
      const body = { name: 'Guest', email: guest.email, roleId: planner, hubId, teamIds }
      return {
        request: { by: first, method: 'POST', url: '/user', body },
        other: { by: other, method: 'POST', url: '/user', body },
        check: async (t, after) =>
          void t.equal(await listed(await after.login(first.email), '/users', `email=${guest.email}`), 1),
      }
    },
  },
  {
    operationId: 'amendUser',
    what: 'an owner who becomes something else, in other teams, with another e-mail and password',
    prepare: async (world) => {
      const { first, second, other, planner, teamIds } = await office(world)
      const elsewhere = await world.signup({ email: `elsewhere${++prepared}@example.com` })
      const guest = { name: 'G', email: other.email, roleId: await world.roleId(elsewhere, 'planner') }
      await elsewhere.call('POST', '/user', guest)
      const email = `renamed${++prepared}@example.com`
      const body = { name: 'Renamed', roleId: planner, email, teamIds: [teamIds[1]], password: `${PASSWORD}-2` }
      const request: Request = { by: first, method: 'PATCH', url: `/user/${second}`, body }
      return {
        request,
        other: request,
        check: async (t, after, last) => {
          t.match(last, {
            status: 200,
            body: { data: { name: 'Renamed', email, roleId: planner, teamIds: [teamIds[1]] } },
          })
          t.match((await (await after.login(email, `${PASSWORD}-2`)).call('GET', '/user')).body.data, {
            teamIds: [teamIds[1]],
          })
          t.equal(await listed(await after.login(elsewhere.email), '/users', `email=${email}`), 1)
        },
      }
    },
  },
  {
    operationId: 'replaceUser',
    what: 'a planner who becomes an owner',
    prepare: async (world) => {
      const { first, other, owner, planner, hubId, teamIds, made } = await office(world)
      const email = `third${++prepared}@example.com`
      const id = await made('/user', { name: 'Third', email, password: PASSWORD, roleId: planner, hubId })
      const body = { name: 'Third', email, roleId: owner, hubId, teamIds, status: 'active' }
      return {
        request: { by: first, method: 'PUT', url: `/user/${id}`, body },
        other: { by: other, method: 'PUT', url: `/user/${id}`, body },
        check: async (t, _after, last) =>
          void t.match(last, { status: 200, body: { data: { roleId: owner, teamIds, version: 2 } } }),
      }
    },
  },
  {
    operationId: 'amendUser',
    what: 'an owner who would get an e-mail that is taken',
    prepare: async (world) => {
      const { first, second, planner } = await office(world)
      const body = { name: 'Never', roleId: planner, email: first.email }
      const request: Request = { by: first, method: 'PATCH', url: `/user/${second}`, body }
      return {
        request,
        other: request,
        check: async (t, after, last) => {
          t.match(last, { status: 409, body: { code: 'key_in_use' } })
          t.match((await (await after.login(first.email)).call('GET', `/user/${second}`)).body.data, { name: 'Second' })
        },
      }
    },
  },
  {
    operationId: 'amendOwnUser',
    what: "a user's own name and password",
    prepare: async (world) => {
      const { first } = await office(world)
      const body = { name: 'Myself', password: `${PASSWORD}-2`, currentPassword: PASSWORD }
      const request: Request = { by: first, method: 'PATCH', url: '/user', body }
      return {
        request,
        other: { ...request, body: { ...body, currentPassword: `${PASSWORD}-2` } },
        check: async (t, after) =>
          void t.match((await (await after.login(first.email, `${PASSWORD}-2`)).call('GET', '/user')).body.data, {
            name: 'Myself',
          }),
      }
    },
  },
  {
    operationId: 'deleteUser',
    what: 'an owner in a team who leaves',
    prepare: async (world) => {
      const { first, second, other, planner } = await office(world)
      const request: Request = { by: first, method: 'DELETE', url: `/user/${second}` }
      return {
        request,
        other: request,
        check: async (t, after, last) => {
          t.equal(last.status, 404, 'the second of two who delete finds nothing')
          const session = await after.login(first.email)
          t.equal(await listed(session, '/users', `email=${other.email}`), 0)
          t.equal(
            (await session.call('POST', '/user', { name: 'Again', email: other.email, roleId: planner })).status,
            201,
          )
          t.same(await halvesOf(after), [])
        },
      }
    },
  },
  {
    operationId: 'createRole',
    what: 'a role',
    prepare: async (world) => {
      const { first, other } = await office(world)
      const body = { name: 'Made', permissions: ['view/hub'] }
      return {
        request: { by: first, method: 'POST', url: '/role', body },
        other: { by: other, method: 'POST', url: '/role', body },
        check: async (t, after) => void t.equal(await listed(await after.login(first.email), '/roles', 'name=Made'), 1),
      }
    },
  },
  {
    operationId: 'amendRole',
    what: "a role's name",
    prepare: async (world) => {
      const { first, other, made } = await office(world)
      const id = await made('/role', { name: 'Before', permissions: [] })
      const body = { name: 'After' }
      return {
        request: { by: first, method: 'PATCH', url: `/role/${id}`, body },
        other: { by: other, method: 'PATCH', url: `/role/${id}`, body },
        check: async (t, after) => {
          const session = await after.login(first.email)
          t.equal(await listed(session, '/roles', 'name=After'), 1)
          t.equal((await session.call('POST', '/role', { name: 'Before' })).status, 201, 'the old name is free')
        },
      }
    },
  },
  {
    operationId: 'replaceRole',
    what: 'a role as a whole',
    prepare: async (world) => {
      const { first, other, made } = await office(world)
      const id = await made('/role', { name: 'Before', permissions: [] })
      const body = { name: 'After', permissions: ['view/hub'] }
      return {
        request: { by: first, method: 'PUT', url: `/role/${id}`, body },
        other: { by: other, method: 'PUT', url: `/role/${id}`, body },
        check: async (t, after) =>
          void t.equal(await listed(await after.login(first.email), '/roles', 'name=After'), 1),
      }
    },
  },
]

/** Whoever tries passwords from one address is soon refused. */
const addressOfItsOwn = (): string => `10.0.0.${++prepared}`

/** Sends it as its caller, to a service whose log may die; undefined when it did. */
const send = async (
  { by, method, url, body }: Request,
  call: World['call'],
  authenticate: World['authenticator']['authenticate'],
  seed?: Buffer,
): Promise<CallAnswer | undefined> => {
  const caller = by && (await authenticate(by.token))
  return call(method, url, { caller, body, seed, address: addressOfItsOwn() }).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error
    return undefined
  })
}

/** One life ends after so many writes, the next one begins: nothing is half then, nor after both repeats. Answers how many writes there were when it did not end. */
const walk = async (t: Test, world: World, prepare: Walk['prepare'], writes: number, isSameFirst: boolean) => {
  const { authenticate } = world.authenticator
  const { request, other, check } = await prepare(world)
  const dying = dyingLog(world.log, writes)
  const seed = randomBytes(32)
  const first = world.over(dying.log)
  const answer = await send(request, first.call, authenticate, seed)
  await first.runs.close()

  // Another life: nothing of the first one but what it stored.
  await openKnown(world, dying.appended)
  const second = world.over(world.log)
  await second.runs.idle()
  t.same(await halvesOf(world), [], `after ${writes} writes nothing is half: ${dying.appended}`)
  const same = async () => send(await again(world, request), second.call, authenticate, seed)
  const others = async () => send(await again(world, other), second.call, authenticate)
  const answers = isSameFirst ? [await same(), await others()] : [await others(), await same()]
  for (const one of answers) t.ok(one !== undefined && one.status < 500, `answered ${one?.status}`)
  await check(t, world, answers[1] as CallAnswer)
  t.same(await halvesOf(world), [], `repeated after ${writes} writes, nothing is half`)
  await second.runs.close()
  return answer === undefined ? undefined : dying.appended
}

/** So few writes are walked with both orders of repeats; more with each in turn. */
const BOTH_ORDERS_MAX = 4

for (const { operationId, what, prepare } of WALKS) {
  test(`${what} (${operationId}), killed between every two writes and repeated`, { timeout: 120_000 }, async (t) => {
    const world = await openIdentity(t)
    let appended: readonly string[] | undefined
    let writes = 0
    for (; appended === undefined; writes++) appended = await walk(t, world, prepare, writes, writes % 2 === 0)
    t.comment(`${writes - 1} writes: ${appended}`)
    if (writes > BOTH_ORDERS_MAX) return
    for (let again = 0; again < writes; again++) await walk(t, world, prepare, again, again % 2 === 1)
  })
}

/** Whoever's token was revoked by their own call signs in again. */
const again = async (world: World, sent: Request): Promise<Request> => {
  const { by } = sent
  if (by === undefined) return sent
  const isGood = await world.authenticator.authenticate(by.token).then(
    () => true,
    () => false,
  )
  if (isGood) return sent
  const signIn = (password: string) => world.login(by.email, password, { address: addressOfItsOwn() })
  return { ...sent, by: await signIn(PASSWORD).catch(() => signIn(`${PASSWORD}-2`)) }
}

/** Waits until the table of open processes has what was begun. */
const openKnown = async ({ log, settle }: World, appended: readonly string[]): Promise<void> => {
  for (const stream of appended.filter((name) => name.startsWith('process-'))) {
    const [last] = await log.read(stream, 'end', 1, 'backwards')
    await settle({ position: last.position, types: [last.type] }, 10_000)
  }
}

/** What is half once the read models have followed. */
const halvesOf = async (world: World): Promise<string[]> => {
  let found: string[] = []
  await until('nothing to be half', async () => (found = await halves(world)).length === 0, 5_000).catch(
    () => undefined,
  )
  return found
}
