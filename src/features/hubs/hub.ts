import { Failure } from '../../kernel/errors.ts'
import { latitude, longitude, newName, optional, text } from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'

/** A physical place where routes start. */
export const hub = defineResource({
  noun: 'hub',
  plural: 'hubs',
  tag: 'Hubs',
  fields: { name: newName({ max: 100 }), address: optional(text({ max: 300 })), lat: latitude(), lng: longitude() },
  permissions: { view: 'view/hub', edit: 'edit/hub' },
  hubField: '_id',
  table: {
    version: 2,
    isShared: true,
    indexes: { equality: ['name', 'address'], range: ['name'], text: ['name', 'address'] },
  },
  example: { name: 'Warsaw West', address: 'Wolska 1, Warszawa', lat: 52.23, lng: 20.98 },
  deletion: {
    check: async ({ services: { tables }, organizationId }) => {
      const { total = 0 } = await tables.find('hubs', organizationId, { limit: 1, total: true })
      const errors = [{ path: '/organization', message: 'needs at least one hub' }]
      if (total <= 1) throw new Failure('conflict', { message: 'An organization needs at least one hub.', errors })
    },
  },
})
