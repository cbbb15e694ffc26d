import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { list, optional, reference, text, time, withDefault } from '../../kernel/schema.ts'
import type { ToldOnce, WriteContext } from '../../kit/resource/declaration.ts'
import { defineResource, type Resource } from '../../kit/resource/resource.ts'
import { makeServiceKey, SERVICE_ACCOUNTS_TABLE } from './views.ts'

/** Refuses an account with more rights than the caller may give. @throws Failure forbidden, invalid */
export type AssertMayGive = (write: WriteContext, account: JsonObject) => Promise<void>

export const KEY: ToldOnce = {
  member: 'key',
  example: 'wmk_<secret>',
  make: (_id, { keyring }, seed) => {
    const { key, keyHash } = makeServiceKey(keyring, seed)
    return { told: key, kept: { keyHash } }
  },
}

const hash = text({ max: 100 })

/** An account for a program: no person, no password, its own key. */
export const defineServiceAccount = (assertMayGive: AssertMayGive): Resource =>
  defineResource({
    noun: 'serviceAccount',
    plural: SERVICE_ACCOUNTS_TABLE,
    tag: 'Service accounts',
    paths: { one: '/service-account', many: '/service-accounts' },
    fields: {
      name: text({ max: 100 }),
      roleId: reference('roles'),
      hubId: withDefault(list(reference('hubs'), { max: 500, unique: true }), []),
      expiresAt: optional(time()),
    },
    readOnly: {
      lastUsedAt: optional({
        schema: { type: 'string', format: 'date-time', description: 'When its key was used last, to five minutes.' },
      }),
    },
    internal: { keyHash: hash, previousKeyHash: optional(hash), previousKeyUntil: optional(time()) },
    secrets: { told: KEY },
    permissions: { view: 'edit/user', edit: 'edit/user' },
    hubField: 'hubId',
    table: { indexes: { equality: ['name', 'roleId'], range: ['name', 'expiresAt'], text: ['name'] } },
    example: {
      name: 'Warehouse system',
      roleId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
      hubId: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c'],
    },
    rules: {
      checks: async (write) => {
        const { values, before, now } = write
        if (values.expiresAt !== before?.expiresAt && Date.parse(values.expiresAt as string) <= now)
          throw invalid('/expiresAt', 'must be in the future')
        if (before !== undefined) await assertMayGive(write, before)
        await assertMayGive(write, values)
      },
    },
    deletion: { check: (write) => assertMayGive(write, write.values) },
  })
