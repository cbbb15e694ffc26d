import type { Json, JsonObject } from '../../kernel/json.ts'
import { anyObject, bool, newName, withDefault } from '../../kernel/schema.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { ResourceSecrets } from '../../kit/resource/secrets.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { masked, unmasked } from './masked.ts'

/** Room for the largest settings and the rest of the body. */
const BODY_BYTES_MAX = 128 * 1024

const SETTINGS = {
  schema: {
    ...anyObject().schema,
    description:
      'Any content, kept encrypted. Values whose name says key, secret, token or password are answered as `***`, and `***` sent back keeps the value.',
  },
}

/**
 * An organization's setup of a plugin, once or several times. The service reads only names in the settings: members
 * whose names denote secrets are not answered.
 */
export const pluginSetting = defineResource({
  noun: 'pluginSetting',
  plural: 'pluginSettings',
  paths: { one: '/plugin-setting', many: '/plugin-settings' },
  tag: 'Plugin settings',
  fields: {
    plugin: newName({ max: 100 }),
    settings: withDefault(SETTINGS, {}),
    isActive: withDefault(bool(), true),
  },
  permissions: { view: 'view/plugin-setting', edit: 'edit/plugin-setting' },
  table: { indexes: { equality: ['plugin', 'isActive'], range: ['plugin'], text: ['plugin'] }, version: 2 },
  secrets: { sealed: ['settings'] },
  rules: {
    keep: async ({ values, before }) => ({
      ...values,
      settings: unmasked(values.settings, before?.settings, '/settings'),
    }),
  },
  present: (rows) => rows.map((row) => ({ ...row, settings: masked(row.settings as Json) })),
  body: { bytesMax: BODY_BYTES_MAX },
  example: { plugin: 'route-colors', settings: { palette: 'dark', legend: true }, isActive: true },
})

/** Values as in events, the settings as answered. */
export const shownSettings = (keyring: Keyring, values: JsonObject): JsonObject => {
  const opened = new ResourceSecrets(pluginSetting.declaration, keyring).openedRow(values) as JsonObject
  return opened.settings === undefined ? opened : { ...opened, settings: masked(opened.settings) }
}
