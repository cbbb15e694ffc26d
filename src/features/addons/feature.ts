import type { Feature } from '../../feature.ts'
import { addon } from './addon.ts'
import { addonRoutes } from './api.ts'
import { ADDON_FILES } from './paths.ts'

export const addons: Feature = {
  resources: [addon],
  routes: (services) => addonRoutes({ ...services, origin: services.config.addonOrigin }),
  fileOwners: (services) => [
    {
      // Every version of an add-on stays for as long as the add-on does.
      prefix: ADDON_FILES,
      isNamed: async (key) => (await addon.writer(services).load(key.split('/')[1])).state.status === 'live',
    },
  ],
}
