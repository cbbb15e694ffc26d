import { Uploads } from '../kit/files/uploads.ts'
import type { Route } from '../kit/http/route.ts'
import { closeAll, openedParts } from '../operations/close-all.ts'
import { FEATURES } from '../product.ts'
import type { OpenRole } from './role.ts'

/** Routes of all features, for users and their programs. */
export const openApi: OpenRole = async (services) => {
  const { tables, files, config, logger, processes } = services
  const uploads = new Uploads({ files, bytesMax: config.fileBytesMax })
  const holders = FEATURES.flatMap(({ attachments }) => attachments?.(services, uploads) ?? [])
  const audited = Object.assign({}, ...FEATURES.map((feature) => feature.audited))
  const { opened, kept } = openedParts()
  await Promise.all(FEATURES.flatMap((feature) => feature.tables ?? []).map((table) => tables.declare(table)))
  const routes: Route[] = []
  for (const feature of FEATURES)
    routes.push(...((await feature.routes?.({ ...services, uploads, holders, audited, kept })) ?? []))
  return {
    routes,
    close: async () => {
      await processes.idle()
      await closeAll(opened, logger)
    },
  }
}
