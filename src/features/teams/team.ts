import { invalid } from '../../kernel/errors.ts'
import { id, list, text, withDefault } from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
import { assertExists } from '../../kit/resource/references.ts'
import type { WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'

/** Groups users within a hub; its members have access to that hub. */
export const team = defineResource({
  noun: 'team',
  plural: 'teams',
  tag: 'Teams',
  fields: { name: text({ max: 100 }), hubId: id(), userIds: withDefault(list(id(), { max: 5_000, unique: true }), []) },
  permissions: { view: 'view/team', edit: 'edit/team' },
  hubField: 'hubId',
  version: 2,
  indexes: { equality: ['name', 'userIds'], range: ['name'], text: ['name'] },
  example: { name: 'Morning shift', hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c', userIds: [] },
  checks: (write) => assertTeam(write),
})

const assertTeam = async ({
  services: { tables },
  caller,
  organizationId,
  values,
  before,
}: WriteContext): Promise<void> => {
  // Whoever writes without a caller has checked it already.
  if (caller === undefined) return
  const hubId = values.hubId as string
  await assertExists(tables, 'hubs', organizationId, hubId, '/hubId')
  const known = before?.hubId === hubId ? ((before.userIds ?? []) as string[]) : []
  for (const [i, userId] of (values.userIds as string[]).entries()) {
    if (known.includes(userId)) continue
    const path = `/userIds/${i}`
    const user = await assertExists<Row & { hubId: string[]; roleId: string }>(
      tables,
      'users',
      organizationId,
      userId,
      path,
    )
    if (user.hubId.includes(hubId)) continue
    const role = await tables.get('roles', organizationId, user.roleId)
    if (role?.key !== 'owner' && role?.key !== 'admin')
      throw invalid(path, 'is a user without access to the hub of the team')
  }
}
