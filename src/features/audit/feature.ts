import { listedRows } from '../../../projections/listed-rows.ts'
import type { ApiServices, Feature } from '../../feature.ts'
import { auditRoute } from './api.ts'
import { AUDIT, auditedNouns, auditedPrefixes } from './views.ts'

/** Longest wait of a read that finds nothing for the audit log to catch up. */
const CATCH_UP_MS = 1_000

export const audit: Feature = {
  routes: (services) => [
    auditRoute({
      log: services.log,
      listed: listedRows(services),
      resources: services.resources.all(),
      asShown: async (caller, { plural }, values) => {
        const shown = services.audited[plural]
        return shown === undefined ? values : shown(services, caller, values)
      },
      caughtUp: () => caughtUp(services),
    }),
  ],
}

/** Commands are answered once these have stored their events; the end of the log may lie far beyond, among points. */
const caughtUp = async ({ resources, projections, checkpoints, settle }: ApiServices): Promise<boolean> => {
  const audited = auditedPrefixes(auditedNouns(resources.all()))
  const names = projections
    .filter(({ isBuiltOnce, prefixes }) => isBuiltOnce !== true && prefixes.some((prefix) => audited.includes(prefix)))
    .map(({ name }) => name)
  return settle({ types: [], position: await checkpoints.changedThrough(names) }, CATCH_UP_MS, [{ consumer: AUDIT }])
}
