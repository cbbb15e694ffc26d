import type { Test } from 'tap'
import type { Method } from '../../src/kit/http/route.ts'
import type { CallAnswer } from '../support/call-route.ts'
import { issuedToken, type openIdentity, PASSWORD, type Session } from '../support/open-identity.ts'
import { until } from '../support/service.ts'
import { halvesOf } from './office-truth.ts'

export type World = Awaited<ReturnType<typeof openIdentity>>

export interface Request {
  /** Absent for what everybody may call. */
  by?: Session
  method: Method
  url: string
  body?: object
}

export interface Walk {
  /** As the route table has it. */
  operationId: string
  what: string
  /** Makes what has to be there, and answers the request, and the same wish by somebody else. */
  prepare(
    world: World,
  ): Promise<{ request: Request; other: Request; check(t: Test, world: World, last: CallAnswer): Promise<void> }>
}

const hubFields = { hubName: 'Main', hubLat: 52.2, hubLng: 21 }

export const listed = async (session: Session, path: string, by: string): Promise<number> =>
  (await session.call('GET', `${path}?${by}`)).body.total

let prepared = 0

/** Two owners, a team, and a planner in it who is at home elsewhere too. */
export const office = async (world: World) => {
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

/** Every command that writes several streams: `every-command.test.ts` looks for one that is not here. */
export const WALKS: Walk[] = [
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
    operationId: 'inviteUser',
    what: 'an invitation',
    prepare: async (world) => {
      const { first, other, planner, hubId, teamIds } = await office(world)
      const email = `invited${++prepared}@example.com`
      const body = { email, roleId: planner, hubId, teamIds }
      return {
        request: { by: first, method: 'POST', url: '/user/invite', body },
        other: { by: other, method: 'POST', url: '/user/invite', body },
        check: async (t, after) => {
          t.equal(await listed(await after.login(first.email), '/users', `email=${email}`), 1)
          await issuedToken(after, email, 'invitation')
        },
      }
    },
  },
  {
    operationId: 'acceptInvitation',
    what: 'an owner who accepts an invitation',
    prepare: async (world) => {
      const { first, owner, hubId } = await office(world)
      const email = `invited${++prepared}@example.com`
      await first.call('POST', '/user/invite', { email, roleId: owner, hubId })
      const token = await issuedToken(world, email, 'invitation')
      const request: Request = { method: 'POST', url: '/auth/accept-invitation', body: { token, password: PASSWORD } }
      return {
        request,
        other: request,
        check: async (t, after) => {
          const { body } = await (await after.login(email)).call('GET', '/user')
          t.match(body.data, { status: 'active', email })
        },
      }
    },
  },
  {
    operationId: 'resetPassword',
    what: 'a new password by a mailed link',
    prepare: async (world) => {
      const { first, second } = await office(world)
      await first.call('PATCH', `/user/${second}`, { password: `${PASSWORD}-2` })
      const { email } = (await first.call('GET', `/user/${second}`)).body.data
      const token = await issuedToken(world, email, 'reopening')
      const before = await world.login(email, `${PASSWORD}-2`)
      const request: Request = { method: 'POST', url: '/auth/reset-password', body: { token, password: PASSWORD } }
      return {
        request,
        other: request,
        check: async (_t, after) => {
          await until(
            'the session before to have ended',
            async () => (await before.call('GET', '/user')).status === 401,
          )
          await after.login(email)
        },
      }
    },
  },
  {
    operationId: 'verifyEmail',
    what: 'a new e-mail of somebody who is at home in two organizations',
    prepare: async (world) => {
      const { first, other, planner } = await office(world)
      const elsewhere = await world.signup({ email: `elsewhere${++prepared}@example.com` })
      const roleId = await world.roleId(elsewhere, 'planner')
      await elsewhere.call('POST', '/user/invite', { email: other.email, roleId })
      const email = `moved${++prepared}@example.com`
      await other.call('PATCH', '/user', { email, currentPassword: PASSWORD })
      const token = await issuedToken(world, other.email, 'emailChange')
      const request: Request = { method: 'POST', url: '/auth/verify-email', body: { token, password: PASSWORD } }
      return {
        request,
        other: request,
        check: async (t, after) => {
          t.match((await (await after.login(email)).call('GET', '/user')).body.data, { email })
          t.equal(await listed(await after.login(elsewhere.email), '/users', `email=${email}`), 1)
          t.equal(
            (
              await (
                await after.login(first.email)
              ).call('POST', '/user/invite', { email: other.email, roleId: planner })
            ).status,
            201,
            'the old one is free',
          )
        },
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
            body: { data: { name: 'Renamed', pendingEmail: email, roleId: planner, teamIds: [teamIds[1]] } },
          })
          t.match((await (await after.login(other.email, `${PASSWORD}-2`)).call('GET', '/user')).body.data, {
            teamIds: [teamIds[1]],
          })
          await issuedToken(after, other.email, 'emailChange')
          await issuedToken(after, other.email, 'reopening')
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
      const { first, second, other, planner, hubId, made } = await office(world)
      await made('/vehicle', { name: 'Van', hubId: hubId[0], userId: second })
      await made('/tracker', { name: 'Badge', kind: 'device', hubId: hubId[0], userId: second })
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
    operationId: 'deleteUser',
    what: 'an owner with a phone who is erased, and is nowhere else',
    prepare: async (world) => {
      const { first, second, other, planner, hubId, made } = await office(world)
      await made('/tracker', { name: 'Phone', kind: 'phone', hubId: hubId[0], userId: second })
      await world.call('POST', '/auth/forgot-password', { body: { email: other.email } })
      const request: Request = { by: first, method: 'DELETE', url: `/user/${second}?erase=true` }
      return {
        request,
        other: request,
        check: async (t, after, last) => {
          t.equal(last.status, 404, 'the second of two who erase finds nothing')
          const session = await after.login(first.email)
          t.equal(await listed(session, '/users', `email=${other.email}`), 0)
          t.equal(await listed(session, '/trackers', 'kind=phone'), 0)
          const [left, ...more] = await after.log.read(`user-${second}`, 0, 10)
          t.match({ type: left.type, more }, { type: 'userDeleted', more: [] })
          t.notMatch(Buffer.from(left.data).toString(), other.email)
          t.equal(
            (await session.call('POST', '/user/invite', { email: other.email, roleId: planner })).status,
            201,
            'the address is free',
          )
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
    operationId: 'createData',
    what: 'a record with two unique values',
    prepare: async (world) => {
      const { first, other, made } = await office(world)
      const fields = [
        { name: 'number', type: 'text' },
        { name: 'phone', type: 'text', unique: true },
      ]
      const dataTypeId = await made('/data-type', { name: 'Customers', primaryKey: 'number', fields })
      const body = { dataTypeId, values: { number: 'C-1', phone: '1' } }
      return {
        request: { by: first, method: 'POST', url: '/data', body },
        other: { by: other, method: 'POST', url: '/data', body },
        check: async (t, after) =>
          void t.equal(await listed(await after.login(first.email), '/data', `dataTypeId=${dataTypeId}`), 1),
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
  {
    operationId: 'deleteRole',
    what: 'a role in use, with another in its place',
    prepare: async (world) => {
      const { first, other, planner, hubId, made } = await office(world)
      const id = await made('/role', { name: 'Leaving', permissions: [] })
      for (const name of ['One', 'Two'])
        await made('/user', { name, email: `${name}${++prepared}@example.com`, roleId: id, hubId })
      const url = `/role/${id}?replaceWith=${planner}`
      return {
        request: { by: first, method: 'DELETE', url },
        other: { by: other, method: 'DELETE', url },
        check: async (t, after) => {
          const session = await after.login(first.email)
          t.equal(await listed(session, '/roles', 'name=Leaving'), 0)
          t.equal(await listed(session, '/users', `roleId=${planner}`), 2)
          t.equal((await session.call('POST', '/role', { name: 'Leaving' })).status, 201, 'its name is free')
        },
      }
    },
  },
  {
    operationId: 'deleteTeam',
    what: 'a team that trackers are of',
    prepare: async (world) => {
      const { first, other, hubId, teamIds, made } = await office(world)
      for (const name of ['A', 'B'])
        await made('/tracker', { name, kind: 'device', hubId: hubId[0], teamId: teamIds[0] })
      const url = `/team/${teamIds[0]}`
      return {
        request: { by: first, method: 'DELETE', url },
        other: { by: other, method: 'DELETE', url },
        check: async (t, after) => {
          const session = await after.login(first.email)
          t.equal(await listed(session, '/teams', 'limit=10'), 1)
          t.equal(await listed(session, '/trackers', `teamId=${teamIds[0]}`), 0)
        },
      }
    },
  },
  {
    operationId: 'deleteVehicle',
    what: 'a vehicle that trackers are in',
    prepare: async (world) => {
      const { first, other, hubId, made } = await office(world)
      const id = await made('/vehicle', { name: 'Van', hubId: hubId[0] })
      for (const name of ['A', 'B']) await made('/tracker', { name, kind: 'vehicle', hubId: hubId[0], vehicleId: id })
      const url = `/vehicle/${id}`
      return {
        request: { by: first, method: 'DELETE', url },
        other: { by: other, method: 'DELETE', url },
        check: async (t, after) => {
          const session = await after.login(first.email)
          t.equal(await listed(session, '/vehicles', 'limit=10'), 0)
          t.equal(await listed(session, '/trackers', `vehicleId=${id}`), 0)
        },
      }
    },
  },
]

/** An alias of one above, what a test of its own walks, and what roles and records stand for: one unique name, written by the same code. */
export const WALKED_ELSEWHERE = [
  'createOrganizationAlias',
  'eraseOrganization',
  'importGeofences',
  'createDataType',
  'createFlow',
  'amendFlow',
  'replaceFlow',
  'replaceData',
  'createTask',
  'replaceTask',
  // A result without its job gets one by reactors/routing.
  'planRoutes',
  // Each item is a create of its own, with ids of its own.
  'createTasks',
  'writeDataBulk',
]
