import {
  anyObject,
  bool,
  currency,
  integer,
  language,
  newName,
  object,
  optional,
  timeZone,
  withDefault,
} from '../../kernel/schema.ts'
import type { Row } from '../../kernel/table.ts'
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

const AMOUNTS = { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } } as const

/** An organization is a resource of itself: its id is its organizationId. Its routes have no id and are written by hand. */
export const organization = defineResource({
  noun: 'organization',
  plural: ORGANIZATIONS_TABLE,
  tag: 'Organization',
  fields: { name: newName({ min: 3, max: 100 }), settings: withDefault(object(SETTINGS_FIELDS), SETTINGS_DEFAULT) },
  readOnly: {
    logo: optional({ schema: { type: ['string', 'null'], maxLength: 300 } }),
    limits: optional({ schema: { ...AMOUNTS, description: 'How much of each the organization may have.' } }),
    uses: optional({ schema: { ...AMOUNTS, description: 'How much of it the organization has.' } }),
  },
  internal: { logoBytes: optional(integer({ min: 0 })) },
  permissions: { view: 'view/organization', edit: 'edit/organization' },
  example: { name: 'Green Couriers' },
})

/** The row as it is answered. */
export const shownOrganization = ({ logoBytes: _internal, ...row }: Row): Row => ({ logo: null, ...row })
