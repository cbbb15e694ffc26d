import type { Feature } from '../../feature.ts'
import { makeHub } from '../../processes/make-hub.ts'
import { hubRoutes } from './hub-routes.ts'
import { hub } from './hub.ts'

export const hubs: Feature = {
  resources: [hub],
  routes: hubRoutes,
  processes: ({ office }) => [makeHub(office)],
}
