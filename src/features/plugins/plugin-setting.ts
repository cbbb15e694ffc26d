import { anyObject, bool, text, withDefault } from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'

/** Settings as large as this are kept, with some room for the rest of the body. */
const BODY_BYTES_MAX = 128 * 1024

/** What an organization has set up for a plugin, once or several times. The service keeps the settings and looks into none. */
export const pluginSetting = defineResource({
  noun: 'pluginSetting',
  plural: 'pluginSettings',
  paths: { one: '/plugin-setting', many: '/plugin-settings' },
  tag: 'Plugin settings',
  fields: {
    plugin: text({ max: 100 }),
    settings: withDefault(anyObject(), {}),
    isActive: withDefault(bool(), true),
  },
  permissions: { view: 'view/plugin-setting', edit: 'edit/plugin-setting' },
  indexes: { equality: ['plugin', 'isActive'], range: ['plugin'], text: ['plugin'] },
  bodyBytesMax: BODY_BYTES_MAX,
  example: { plugin: 'route-colors', settings: { palette: 'dark', legend: true }, isActive: true },
})
