import { LOGOS, logoPath } from '../features/identity/logo-path.ts'
import { ORGANIZATIONS_TABLE } from '../features/identity/views.ts'
import type { FileOwner } from '../reactors/sweep/sweep-files.ts'
import type { RoleServices } from './role.ts'

/** Who names which files: what nobody names is swept. */
export const fileOwners = ({ tables }: Pick<RoleServices, 'tables'>): FileOwner[] => [
  {
    prefix: LOGOS,
    isNamed: async (key) => {
      const [, organizationId, name] = key.split('/')
      const row = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
      return row?.logo === logoPath(organizationId, name)
    },
  },
]
