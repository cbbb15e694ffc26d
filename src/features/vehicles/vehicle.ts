import { invalid } from '../../kernel/errors.ts'
import {
  integer,
  list,
  newName,
  number,
  object,
  oneOf,
  optional,
  record,
  reference,
  text,
  timeOfDay,
  withDefault,
} from '../../kernel/schema.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { userHasHub, USERS_TABLE } from '../identity/views.ts'

const nonNegative = { min: 0, max: 1e9 }

/** `to` before `from` means the next day. */
const span = object({ from: timeOfDay(), to: timeOfDay() })

/** A vehicle of routes. Speeds in km/h, distances in m, durations in s, money in the organization's currency. */
export const vehicle = defineResource({
  noun: 'vehicle',
  plural: 'vehicles',
  tag: 'Vehicles',
  fields: {
    name: newName({ max: 100 }),
    type: withDefault(oneOf('car', 'bike', 'truck', 'other'), 'car'),
    hubId: optional(reference('hubs')),
    userId: optional(reference('users')),
    capacity: withDefault(record(number(nonNegative), { max: 20 }), {}),
    speed: optional(number({ min: 0, max: 1_000 })),
    cost: optional(
      object({
        fixed: optional(number(nonNegative)),
        perKm: optional(number(nonNegative)),
        perHour: optional(number(nonNegative)),
      }),
    ),
    workingHours: optional(span),
    breaks: withDefault(list(span, { max: 20 }), []),
    tags: withDefault(list(text({ max: 50 }), { max: 50, unique: true }), []),
    constraints: withDefault(
      object({
        visitsMax: optional(integer({ min: 0, max: 100_000 })),
        distanceMax: optional(number(nonNegative)),
        durationMax: optional(number(nonNegative)),
      }),
      {},
    ),
  },
  permissions: { view: 'view/vehicle', edit: 'edit/vehicle' },
  hubField: 'hubId',
  deletion: { whenReferenced: 'takeOut' },
  table: {
    version: 2,
    indexes: { equality: ['name', 'type', 'userId', 'tags'], range: ['name'], text: ['name', 'tags'] },
  },
  example: {
    name: 'Van 12',
    type: 'car',
    hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
    capacity: { weight: 800, boxes: 40 },
    speed: 50,
    cost: { fixed: 20, perKm: 0.4, perHour: 18 },
    workingHours: { from: '22:00', to: '06:00' },
    breaks: [{ from: '01:00', to: '01:30' }],
    tags: ['cooled'],
    constraints: { visitsMax: 40 },
  },
  rules: { checks: (write) => checkUser(write) },
})

/** @throws Failure invalid for a user who lacks the vehicle's hub: they would not see their vehicle. */
const checkUser = async ({ services: { tables }, organizationId, values, before }: WriteContext): Promise<void> => {
  const { userId, hubId } = values as { userId?: string; hubId?: string }
  if (userId === undefined || hubId === undefined) return
  // A user who has since lost the hub keeps the vehicle until another user or hub is written.
  if (userId === before?.userId && hubId === before.hubId) return
  const user = await tables.get(USERS_TABLE, organizationId, userId)
  if (user !== undefined && !(await userHasHub(tables, organizationId, user, hubId)))
    throw invalid('/userId', 'is a user who lacks the hub of the vehicle')
}
