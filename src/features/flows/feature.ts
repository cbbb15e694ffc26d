import type { Feature } from '../../feature.ts'
import { flow } from './flow.ts'
import { readVersion } from './read-version.ts'
import { FLOWS, withFieldNames } from './views.ts'

export const flows: Feature = {
  resources: [flow],
  routes: (services) => flow.routes(services, { read: readVersion(services) }),
  audited: {
    [FLOWS]: async ({ tables }, { organizationId }, values) =>
      (await withFieldNames(tables, organizationId, [values]))[0],
  },
}
