import { isObject, type Json } from '../../kernel/json.ts'
import type { StepOrigin } from '../../kit/commands/process.ts'
import type { Wrote } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Details } from './action-type.ts'
import { editDetails } from './edit-details.ts'

/** Makes an automation tell the users of `heir` instead of those of a role that is deleted. Repeating it changes nothing. */
export const tellHeir = (
  services: Pick<ResourceServices, 'log' | 'keyring'>,
  origin: StepOrigin,
  automationId: string,
  roleId: string,
  heir: string,
): Promise<Wrote | undefined> =>
  editDetails(services, origin, automationId, {
    details: (details) => told(details, roleId, heir),
    names: ({ roles, ...names }) => ({
      ...names,
      ...(roles !== undefined && { roles: inherited(roles, roleId, heir) }),
    }),
  })

const told = (details: Details, roleId: string, heir: string): Details => {
  const { to } = details
  const isRole = (one: Json | undefined, id: string): boolean => isObject(one) && one.roleId === id
  if (!Array.isArray(to)) return isRole(to, roleId) ? { ...details, to: { roleId: heir } } : details
  if (!to.some((one) => isRole(one, roleId))) return details
  const isKnown = to.some((one) => isRole(one, heir))
  return { ...details, to: to.flatMap((one) => (!isRole(one, roleId) ? [one] : isKnown ? [] : [{ roleId: heir }])) }
}

const inherited = (roles: readonly string[], roleId: string, heir: string): string[] => [
  ...new Set(roles.map((one) => (one === roleId ? heir : one))),
]
