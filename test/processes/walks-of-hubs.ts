import { PASSWORD } from '../support/open-identity.ts'
import { office, type Walk } from './walks.ts'

let made = 0

/** Commands of hubs, as `WALKS`. */
export const HUB_WALKS: Walk[] = [
  {
    operationId: 'createHub',
    what: 'a hub of somebody who sees some hubs only',
    prepare: async (world) => {
      const { hubId, made: make } = await office(world)
      const email = `yards${++made}@example.com`
      const roleId = await make('/role', { name: 'Yards', permissions: ['view/hub', 'edit/hub'] })
      await make('/user', { name: 'Yards', email, password: PASSWORD, roleId, hubId })
      const editor = await world.login(email)
      const hub = (name: string) =>
        ({ by: editor, method: 'POST', url: '/hub', body: { name, lat: 1, lng: 1 } }) as const
      return {
        request: hub('Own'),
        other: hub('Further'),
        check: async (t) => {
          const hubs = (await editor.call('GET', '/hubs')).body.data
          t.same(hubs.map(({ name }: { name: string }) => name).sort(), ['Further', 'Main', 'Own'])
          const list = (await editor.call('GET', '/user')).body.data.hubId
          t.same(new Set(list), new Set(hubs.map(({ _id }: { _id: string }) => _id)), 'it is in their list')
        },
      }
    },
  },
]
