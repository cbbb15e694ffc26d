import {
  anyObject,
  bool,
  currency,
  integer,
  language,
  newName,
  object,
  optional,
  time,
  timeZone,
  withDefault,
} from '../../../kernel/schema.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/json.ts'
import type { Row } from '../../../kernel/table.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import type { WriteContext } from '../../../kit/resource/declaration.ts'
import { defineResource } from '../../../kit/resource/resource.ts'
import { ORGANIZATIONS_TABLE } from '../views.ts'

export const SETTINGS_FIELDS = {
  language: withDefault(language(), 'en'),
  currency: withDefault(currency(), 'EUR'),
  timeZone: withDefault(timeZone(), 'UTC'),
  configuration: withDefault(anyObject(), {}),
  /** From that day on, users without a second factor may only set one up. */
  requiresSecondFactor: optional(bool()),
  secondFactorFrom: optional(time()),
}

export const SETTINGS_DEFAULT = { language: 'en', currency: 'EUR', timeZone: 'UTC', configuration: {} }

const AMOUNTS = { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } } as const

/** An organization is its own resource: its id is its organizationId. Its routes have no id and are written by hand. */
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
  rules: {
    keep: async ({ values, before, now }) => ({ ...values, settings: keptSettings(values, before, now) }),
    checks: async (write) => assertMayDemand(write),
  },
  permissions: { view: 'view/organization', edit: 'edit/organization' },
  example: { name: 'Green Couriers' },
})

const DEMAND_AFTER_MS = 7 * 86_400_000

const settingsOf = (values: JsonObject | undefined): JsonObject => (values?.settings ?? {}) as JsonObject

/** Adds the day from which a second factor is required: by default, a week from now. */
const keptSettings = (values: JsonObject, before: JsonObject | undefined, now: number): JsonObject => {
  const { secondFactorFrom, ...settings } = settingsOf(values)
  if (settings.requiresSecondFactor !== true) return settings
  const known = settingsOf(before)
  const isNew = known.requiresSecondFactor !== true
  const from = secondFactorFrom ?? (isNew ? formatTime(now + DEMAND_AFTER_MS) : known.secondFactorFrom)
  // A requirement from before such dates existed is already in force.
  return from === undefined
    ? settings
    : { ...settings, secondFactorFrom: formatTime(new Date(from as string | number).getTime()) }
}

/** Callers without a second factor cannot require one: they would be locked out first. @throws Failure conflict */
const assertMayDemand = ({ values, before, caller }: WriteContext): void => {
  const { requiresSecondFactor, secondFactorFrom } = settingsOf(values)
  if (requiresSecondFactor !== true || caller === undefined || caller.hasSecondFactor === true) return
  const known = settingsOf(before)
  if (known.requiresSecondFactor === true && known.secondFactorFrom === secondFactorFrom) return
  throw new Failure('conflict', { message: 'Set up a second factor of your own before you demand it of everybody.' })
}

export const shownOrganization = ({ logoBytes: _internal, ...row }: Row): Row => ({ logo: null, ...row })
