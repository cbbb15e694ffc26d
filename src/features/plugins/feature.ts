import type { Feature } from '../../feature.ts'
import { SEAL_SETTINGS, sealSettings } from '../../reactors/upkeep/seal-settings.ts'
import { pluginSetting, shownSettings } from './plugin-setting.ts'

export const plugins: Feature = {
  resources: [pluginSetting],
  routes: (services) => pluginSetting.routes(services),
  audited: {
    [pluginSetting.declaration.plural]: async ({ keyring }, _caller, values) => shownSettings(keyring, values),
  },
  jobs: ({ follows, ...services }) => [follows(SEAL_SETTINGS, (isOurs) => sealSettings({ ...services, isOurs }))],
}
