import {
  anyObject,
  bool,
  currency,
  language,
  optional,
  text,
  timeZone,
  withDefault,
  object,
} from '../../kernel/schema.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import { ORGANIZATIONS_TABLE } from './views.ts'

export const SETTINGS_FIELDS = {
  language: withDefault(language(), 'en'),
  currency: withDefault(currency(), 'EUR'),
  timeZone: withDefault(timeZone(), 'UTC'),
  configuration: withDefault(anyObject(), {}),
  /** Whoever has no second factor may do nothing but set one up. */
  requiresSecondFactor: optional(bool()),
}

export const SETTINGS_DEFAULT = { language: 'en', currency: 'EUR', timeZone: 'UTC', configuration: {} }

/** An organization is a resource of itself: its id is its organizationId. Its routes have no id and are written by hand. */
export const organization = defineResource({
  noun: 'organization',
  plural: ORGANIZATIONS_TABLE,
  tag: 'Organization',
  fields: { name: text({ min: 3, max: 100 }), settings: withDefault(object(SETTINGS_FIELDS), SETTINGS_DEFAULT) },
  readOnly: { logo: optional({ schema: { type: ['string', 'null'], maxLength: 300 } }) },
  permissions: { view: 'view/organization', edit: 'edit/organization' },
  example: { name: 'Green Couriers' },
})
