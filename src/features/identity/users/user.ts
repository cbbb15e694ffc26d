import type { JsonObject } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import {
  email,
  id,
  language,
  list,
  newName,
  oneOf,
  optional,
  reference,
  secret,
  timeZone,
  withDefault,
} from '../../../kernel/schema.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import { withDefaults } from '../../../kit/resource/pick.ts'
import { defineResource } from '../../../kit/resource/resource.ts'
import { LIVES_MS } from '../links/links.ts'
import { USERS_TABLE } from '../views.ts'

/** Stored by the identity, as a hash. */
export const PASSWORD = secret({ min: 8, max: 200 })

export const USER_HUBS_MAX = 500

const HUBS = list(reference('hubs'), { max: USER_HUBS_MAX, unique: true })
const TEAMS = list(id(), { max: 500, unique: true })
const teamIds = withDefault(TEAMS, [])

/** A person in one organization. E-mail and password belong to the identity; teams store their members. */
export const user = defineResource({
  noun: 'user',
  plural: USERS_TABLE,
  tag: 'Users',
  fields: {
    name: newName({ max: 100 }),
    email: email(),
    roleId: reference('roles'),
    hubId: withDefault(HUBS, []),
    status: withDefault(oneOf('invited', 'active', 'disabled'), 'active'),
    language: optional(language()),
    timeZone: optional(timeZone()),
  },
  readOnly: { teamIds, pendingEmail: optional(email()) },
  body: { accepts: { teamIds, password: optional(PASSWORD) } },
  internal: { identityId: id(), pendingEmailUntil: optional({ schema: { type: 'string', format: 'date-time' } }) },
  table: {
    derived: ({ email: address }) => ({ emailKey: normalizeKey(String(address)) }),
    links: { teamIds: { noun: 'team', field: 'userIds' } },
    version: 2,
    indexes: {
      equality: ['name', 'roleId', 'hubId', 'teamIds', 'status', 'language', 'timeZone', 'emailKey'],
      range: ['name', 'email'],
      text: ['name', 'email'],
    },
  },
  permissions: { view: 'view/user', edit: 'edit/user' },
  personal: { permission: 'edit/user', fields: ['email', 'pendingEmail', 'hubId', 'language', 'timeZone'] },
  deletion: { whenReferenced: 'takeOut', erasable: true },
  present: (rows, { now }) => rows.map((row) => withoutRunOut(row, now)),
  list: {
    filters: {
      email: {
        schema: { ...email().schema, description: 'Those with this e-mail, compared without case.' },
        several: true,
        where: (addresses) => ({ emailKey: (addresses as string[]).map(normalizeKey) }),
      },
    },
  },
  example: {
    name: 'Ada Kowalska',
    email: 'ada@example.com',
    roleId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
    hubId: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'],
  },
})

const IDS = { roleId: reference('roles'), hubId: HUBS, teamIds: TEAMS }

/** A body with its ids in lower case, in which they are compared and kept. */
export const withKeptIds = (body: JsonObject): JsonObject => ({ ...body, ...withDefaults(IDS, body) })

/** A row without its pending e-mail, once that link has expired. */
export const withoutRunOut = (row: Row, now: number): Row => {
  const { pendingEmail, pendingEmailUntil, updatedAt, ...shown } = row
  const until = Date.parse(pendingEmailUntil as string) || Date.parse(updatedAt as string) + LIVES_MS.emailChange
  return pendingEmail === undefined || now < until ? row : { ...shown, updatedAt }
}

/** The caller's own record, of which nothing is hidden from them. */
export const OWN_USER = { ...user.declaration, noun: 'ownUser', personal: undefined }

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
  pendingEmail?: string
}
