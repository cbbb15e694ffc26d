import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { email, id, language, list, oneOf, optional, text, timeZone, withDefault } from '../../kernel/schema.ts'
import { decodeJson } from '../../kernel/event.ts'
import { eventTypes, idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { linkRows } from '../../kit/http/link-rows.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import type { RowSource } from '../../kit/resource/rows.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import { USERS_TABLE } from './views.ts'

/** Members of a row that the service keeps for itself. */
const INTERNAL = ['identityId', 'emailKey']

/** A person in one organization. E-mail and password belong to the identity; teams keep their members. */
export const user = defineResource({
  noun: 'user',
  plural: USERS_TABLE,
  tag: 'Users',
  fields: {
    name: text({ max: 100 }),
    email: email(),
    roleId: id(),
    hubId: withDefault(list(id(), { max: 500, unique: true }), []),
    status: withDefault(oneOf('invited', 'active', 'disabled'), 'active'),
    language: optional(language()),
    timeZone: optional(timeZone()),
  },
  readOnly: { teamIds: withDefault(list(id(), { max: 500 }), []), identityId: optional(id()) },
  permissions: { view: 'view/user', edit: 'edit/user' },
  version: 2,
  indexes: {
    equality: ['name', 'roleId', 'hubId', 'teamIds', 'status', 'language', 'timeZone', 'emailKey'],
    range: ['name', 'email'],
    text: ['name', 'email'],
  },
  present: (row) => presentUser(row),
  example: {
    name: 'Ada Kowalska',
    email: 'ada@example.com',
    roleId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
    hubId: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'],
  },
})

/** A user as clients see it. */
export const presentUser = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([member]) => !INTERNAL.includes(member)))

export type UserRow = Row & {
  _id: string
  organizationId: string
  name: string
  email: string
  roleId: string
  hubId: string[]
  status: string
  identityId: string
  teamIds: string[]
}

const TEAM = eventTypes('team')
const [table] = user.rows.tables as [TableDeclaration]

/** The table of users: their own events, and in `teamIds` the teams that name them. */
export const userRows: RowSource = {
  tables: [table],
  prefixes: [...user.rows.prefixes, 'team-'],
  inputs: [...user.rows.inputs, ...Object.values(TEAM)],
  apply: async (event, rows) => {
    const id = idOfStream(event.stream)
    const { organizationId: scope, values } = decodeJson<ResourceData>(event.data)
    if (event.type === TEAM.created || event.type === TEAM.changed)
      await linkRows(rows, { table: USERS_TABLE, scope, field: 'teamIds' }, id, values.userIds as string[])
    else if (event.type === TEAM.deleted) await linkRows(rows, { table: USERS_TABLE, scope, field: 'teamIds' }, id, [])
    else {
      const before = await rows.get<UserRow>(USERS_TABLE, scope, id)
      await user.rows.apply(event, rows)
      const after = await rows.get<UserRow>(USERS_TABLE, scope, id)
      if (after !== undefined)
        rows.put(USERS_TABLE, scope, id, {
          ...after,
          teamIds: before?.teamIds ?? [],
          emailKey: normalizeKey(after.email),
        })
    }
  },
}
