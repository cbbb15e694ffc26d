import { addon } from '../features/addons/addon.ts'
import { ADDON_FILES } from '../features/addons/paths.ts'
import { record } from '../features/data/record.ts'
import { task } from '../features/tasks/task.ts'
import { LOGOS, logoPath } from '../features/identity/logo-path.ts'
import { ORGANIZATIONS_TABLE } from '../features/identity/views.ts'
import { ATTACHMENTS, filesOf, holderOf, SHARDS } from '../kit/files/attached-file.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import type { FileOwner } from '../reactors/sweep/sweep-files.ts'
import { resources } from './product.ts'

/** Who names which files: what nobody names is swept. */
export const fileOwners = (services: Omit<ResourceServices, 'resources'>): FileOwner[] => [
  {
    prefix: LOGOS,
    isNamed: async (key) => {
      const [, organizationId, name] = key.split('/')
      const row = await services.tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
      return row?.logo === logoPath(organizationId, name)
    },
  },
  {
    // Every version of an add-on stays for as long as the add-on does.
    prefix: ADDON_FILES,
    isNamed: async (key) =>
      (await addon.writer({ ...services, resources }).load(key.split('/')[1])).state.status === 'live',
  },
  {
    prefix: ATTACHMENTS,
    parts: SHARDS.map((shard) => `${shard}/`),
    isNamed: async (key) => {
      const holder = holderOf(key)
      const resource = [task, record].find(({ declaration }) => declaration.noun === holder?.noun)
      if (holder === undefined || resource === undefined) return false
      const { state } = await resource.writer({ ...services, resources }).load(holder.id)
      return state.status === 'live' && filesOf(state.values).some(({ upload }) => upload === holder.upload)
    },
  },
]
