import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { PERMISSIONS, PREDEFINED_ROLES } from '../../../src/features/identity/predefined-roles.ts'
import { rolesDocument } from '../../../src/features/identity/roles-document.ts'

test('docs/roles.md shows the table of the code', async (t) => {
  t.equal(await readFile('docs/roles.md', 'utf8'), rolesDocument())
})

test('the table holds together', async (t) => {
  t.equal(new Set(PERMISSIONS).size, PERMISSIONS.length)
  t.same(
    PREDEFINED_ROLES.map(({ key }) => key),
    ['owner', 'admin', 'planner', 'fieldUser'],
  )
  for (const { key, permissions } of PREDEFINED_ROLES) {
    t.same(
      permissions.filter((permission) => !PERMISSIONS.includes(permission)),
      [],
      key,
    )
    t.equal(permissions.includes('create/organization'), key === 'owner' || key === 'admin', key)
  }
})
