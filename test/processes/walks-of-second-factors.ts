import { codeAt } from '../support/code-at.ts'
import { enrol } from '../support/second-factor.ts'
import { PASSWORD } from '../support/open-identity.ts'
import { until } from '../support/service.ts'
import { office, type Request, type Walk } from './walks.ts'

/** Commands of second factors, as `WALKS`. */
export const SECOND_FACTOR_WALKS: Walk[] = [
  {
    operationId: 'confirmSecondFactor',
    what: 'a second factor',
    prepare: async (world) => {
      const { other } = await office(world)
      const elsewhere = await world.login(other.email)
      const { secret } = (await other.call('POST', '/auth/second-factor', { password: PASSWORD })).body.data
      const body = { code: codeAt(secret, world.clock.now()) }
      const request: Request = { by: other, method: 'POST', url: '/auth/second-factor/confirm', body }
      return {
        request,
        other: request,
        check: async (t) => {
          t.equal((await other.call('GET', '/auth/second-factor')).body.data.isOn, true)
          await until(
            'every other session to have ended',
            async () => (await elsewhere.call('GET', '/user')).status === 401,
          )
        },
      }
    },
  },
  {
    operationId: 'removeSecondFactor',
    what: 'a second factor that is taken off',
    prepare: async (world) => {
      const { other } = await office(world)
      const { recoveryCodes } = await enrol(world, other)
      const off = (code: string): Request => ({
        ...{ by: other, method: 'DELETE', url: '/auth/second-factor', body: { password: PASSWORD, code } },
      })
      return {
        request: off(recoveryCodes[0]),
        other: off(recoveryCodes[1]),
        check: async (t, after) => {
          t.equal((await other.call('GET', '/auth/second-factor')).body.data.isOn, false)
          await after.login(other.email)
        },
      }
    },
  },
  {
    operationId: 'resetSecondFactor',
    what: "somebody's second factor, which an administrator takes off",
    prepare: async (world) => {
      const { first, second, other } = await office(world)
      const further = await other.call('POST', '/organization', {
        ...{ organizationName: 'Further', hubName: 'Main', hubLat: 52.2, hubLng: 21 },
      })
      const session = world.session(further, other.email)
      await enrol(world, session)
      const request: Request = { by: first, method: 'DELETE', url: `/user/${second}/second-factor` }
      return {
        request,
        other: request,
        check: async (t, after) => {
          // The tables follow what the life before has carried on.
          await until('their sessions to have ended', async () => (await session.call('GET', '/user')).status === 401)
          const { organizations } = (await after.login(other.email)).body
          t.equal(organizations.length, 1, 'other organizations are closed')
          const person = await after.context.people.findByEmail(other.email)
          t.ok(person?.state.links.some(({ kind }) => kind === 'reopening'))
        },
      }
    },
  },
]
