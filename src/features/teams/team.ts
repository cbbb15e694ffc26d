import { invalid } from '../../kernel/errors.ts'
import { list, newName, reference, withDefault } from '../../kernel/schema.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { USERS_TABLE, userHasHub } from '../identity/views.ts'

/** Groups users within a hub; its members have access to that hub. */
export const team = defineResource({
  noun: 'team',
  plural: 'teams',
  tag: 'Teams',
  fields: {
    name: newName({ max: 100 }),
    hubId: reference('hubs'),
    userIds: withDefault(list(reference('users'), { max: 5_000, unique: true }), []),
  },
  permissions: { view: 'view/team', edit: 'edit/team' },
  hubField: 'hubId',
  deletion: { whenReferenced: 'takeOut' },
  table: { version: 2, indexes: { equality: ['name', 'userIds'], range: ['name'], text: ['name'] } },
  example: { name: 'Morning shift', hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c', userIds: [] },
  rules: { checks: (write) => assertMembers(write) },
})

/** Members have access to the hub of their team. */
const assertMembers = async ({
  services: { tables },
  caller,
  organizationId,
  values,
  before,
}: WriteContext): Promise<void> => {
  // Writers without a caller have already checked it.
  if (caller === undefined) return
  const hubId = values.hubId as string
  const known = before?.hubId === hubId ? ((before.userIds ?? []) as string[]) : []
  const userIds = values.userIds as string[]
  const users = await tables.getMany(USERS_TABLE, organizationId, userIds)
  for (const [i, user] of users.entries()) {
    if (user === undefined || known.includes(userIds[i])) continue
    if (!(await userHasHub(tables, organizationId, user, hubId)))
      throw invalid(`/userIds/${i}`, 'is a user without access to the hub of the team')
  }
}
