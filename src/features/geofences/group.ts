import { defineResource } from '../../kit/resource/resource.ts'
import { Failure } from '../../kernel/errors.ts'
import { integer, lines, newName, number, object, optional } from '../../kernel/schema.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { ANNOUNCE_FENCES } from '../locations/events.ts'
import { GROUP_NOUN, type GroupRules } from './events.ts'
import { GEOFENCE_GROUPS } from './views.ts'

/** Different values of `maxAccuracy` per organization: for each the matcher keeps a point of each tracker. */
const ACCURACIES_MAX = 16

const PAGE = 500

/** A write is in force in every partition before its reply. */
export const IN_FORCE = [{ consumer: ANNOUNCE_FENCES }]

export const geofenceGroup = defineResource({
  noun: GROUP_NOUN,
  plural: GEOFENCE_GROUPS,
  tag: 'Geofences',
  paths: { one: '/geofence-group', many: '/geofence-groups' },
  fields: {
    name: newName({ max: 200 }),
    description: optional(lines({ max: 2_000 })),
    maxAccuracy: optional(number({ min: 0, max: 1_000_000 })),
    debounce: optional(
      object({
        fixes: optional(integer({ min: 1, max: 1_000 })),
        seconds: optional(number({ min: 0, max: 86_400 })),
      }),
    ),
  },
  permissions: { view: 'view/geofence', edit: 'edit/geofence' },
  rollout: 'geofences',
  settles: () => IN_FORCE,
  table: { indexes: { equality: ['name'], range: ['name'], text: ['name', 'description'] } },
  example: {
    name: 'Depots',
    description: 'Where vehicles rest',
    maxAccuracy: 50,
    debounce: { fixes: 3, seconds: 30 },
  },
  rules: {
    checks: async ({ services, organizationId, id, values }) => {
      const { maxAccuracy } = values as GroupRules
      if (maxAccuracy === undefined) return
      const { rows } = await services.tables.find(GEOFENCE_GROUPS, organizationId, { limit: PAGE })
      const others = rows.filter((other) => other.id !== id).map(({ row }) => (row as JsonObject).maxAccuracy)
      const all = new Set([...others.filter((value) => value !== undefined), maxAccuracy])
      if (all.size <= ACCURACIES_MAX) return
      const message = `The groups of an organization may have at most ${ACCURACIES_MAX} different values of maxAccuracy.`
      throw new Failure('conflict', {
        message,
        errors: [{ path: '/maxAccuracy', message: 'must be one that another group has' }],
      })
    },
  },
})
