import { ATTACHMENTS, filesOf, holderOf, SHARDS } from '../kit/files/attached-file.ts'
import type { ResourceServices } from '../kit/resource/declaration.ts'
import { ResourceWriter } from '../kit/resource/write.ts'
import { FEATURES } from '../product.ts'
import type { FileOwner } from '../reactors/sweep/sweep-files.ts'

/** Kinds of files and their owners: files that no owner names are removed. */
export const fileOwners = (services: ResourceServices): FileOwner[] => [
  ...FEATURES.flatMap((feature) => feature.fileOwners?.(services) ?? []),
  {
    prefix: ATTACHMENTS,
    parts: SHARDS.map((shard) => `${shard}/`),
    isNamed: async (key) => {
      const holder = holderOf(key)
      const declaration = services.resources.all().find(({ noun }) => noun === holder?.noun)
      if (holder === undefined || declaration === undefined) return false
      const { state } = await new ResourceWriter(declaration, services).load(holder.id)
      return state.status === 'live' && filesOf(state.values).some(({ upload }) => upload === holder.upload)
    },
  },
]
